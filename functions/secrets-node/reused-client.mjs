import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { measure } from './common.mjs';

const client = new SecretsManagerClient();
const get = async (name) => (await client.send(new GetSecretValueCommand({ SecretId: name }))).SecretString;

export const handler = (event) => measure(get, event);
