import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { measure } from './common.mjs';

const client = new SecretsManagerClient();
const TTL_MS = 300_000;
const values = new Map();

async function get(name) {
  const known = values.get(name);
  if (known && performance.now() - known.fetched < TTL_MS) return known.value;
  const { SecretString: value } = await client.send(new GetSecretValueCommand({ SecretId: name }));
  values.set(name, { value, fetched: performance.now() });
  return value;
}

export const handler = (event) => measure(get, event);
