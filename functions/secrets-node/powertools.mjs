import { getSecret } from '@aws-lambda-powertools/parameters/secrets';
import { measure } from './common.mjs';

export const handler = (event) => measure((name) => getSecret(name, { maxAge: 300 }), event);
