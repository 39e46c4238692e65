// Answers what it was told, so that a caller sees its event.
import { createRequire } from 'node:module';

const shared = createRequire(import.meta.url)('/opt/shared.cjs');

export const handler = async (event) => ({
  statusCode: 200,
  headers: { 'content-type': 'application/json' },
  multiValueHeaders: event.version === '2.0' ? undefined : { 'x-several': ['1', '2'] },
  cookies: event.version === '2.0' ? ['seen=1'] : undefined,
  body: JSON.stringify({
    event,
    stage: process.env.STAGE,
    table: process.env.TABLE,
    version: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    shared: shared.name,
  }),
});
