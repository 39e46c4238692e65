import middy from '@middy/core';
import secretsManager from '@middy/secrets-manager';
import { SECRET, measure } from './common.mjs';

// The middleware runs once per invocation, so the calls within one are reads of the context.
export const handler = middy()
  .use(secretsManager({ fetchData: { secret: SECRET }, cacheExpiry: 300_000, setToContext: true }))
  .handler((event, context) => measure(async () => JSON.stringify(context.secret), event));
