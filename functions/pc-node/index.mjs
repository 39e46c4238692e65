import { createHash } from 'node:crypto';
import https from 'node:https';
import { DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb';
import { NodeHttpHandler } from '@smithy/node-http-handler';

// Field report S0's two agents. `requestTimeout: 50` was set in all of its calls, although most of them took longer.
const agents = {
  A: { keepAlive: false },
  B: {
    keepAlive: true,
    keepAliveMsecs: 500,
    keepAliveInitialDelay: 500,
    maxSockets: 10,
    maxTotalSockets: 50,
    maxFreeSockets: 10,
    timeout: 150_000,
    scheduling: 'fifo',
    noDelay: true,
  },
};
const httpsAgent = new https.Agent(agents[process.env.AGENT ?? 'B']);
const requestHandler = new NodeHttpHandler({ httpsAgent, requestTimeout: Number(process.env.REQUEST_TIMEOUT_MS ?? 50) });
const client = new DynamoDBClient({ requestHandler });

const query = async () => {
  const started = performance.now();
  const answer = await client.send(
    new QueryCommand({
      TableName: 'test',
      KeyConditionExpression: 'id = :id',
      ExpressionAttributeValues: { ':id': { N: '1' } },
    }),
  );
  return { ms: performance.now() - started, attempts: answer.$metadata.attempts, found: answer.Count === 1 };
};

// S0's function did some 350 to 450 ms of work of its own per call at 256 MB; what it was is not said.
const rounds = Number(process.env.ROUNDS ?? 30_000);
const work = () => {
  let digest = Buffer.alloc(32);
  for (let n = 0; n < rounds; n += 1) {
    digest = createHash('sha256').update(digest).digest();
  }
  return digest.toString('hex').slice(0, 8);
};

// S0 warmed the connection here. With provisioned concurrency more than a minute passes before anybody calls.
const warmed = await query();
console.log(`query in init: ${warmed.ms.toFixed(3)} ms, ${warmed.attempts} attempts`);

export const handler = async () => {
  const { ms, attempts, found } = await query();
  const began = performance.now();
  const digest = work();
  const workMs = performance.now() - began;
  console.log(`query: ${ms.toFixed(3)} ms, ${attempts} attempts`);
  return { ms, attempts, found, work_ms: workMs, digest };
};
