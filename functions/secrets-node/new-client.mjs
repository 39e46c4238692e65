import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { measure } from './common.mjs';

const get = async (name) =>
  (await new SecretsManagerClient().send(new GetSecretValueCommand({ SecretId: name }))).SecretString;

export const handler = (event) => measure(get, event);
