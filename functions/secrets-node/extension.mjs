import { measure } from './common.mjs';

const port = process.env.PARAMETERS_SECRETS_EXTENSION_HTTP_PORT ?? 2773;

async function get(name) {
  const response = await fetch(`http://127.0.0.1:${port}/secretsmanager/get?secretId=${encodeURIComponent(name)}`, {
    headers: { 'X-Aws-Parameters-Secrets-Token': process.env.AWS_SESSION_TOKEN },
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()).SecretString;
}

export const handler = (event) => measure(get, event);
