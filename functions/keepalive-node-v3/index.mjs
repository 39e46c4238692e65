import https from 'node:https';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, GetCommand } from '@aws-sdk/lib-dynamodb';
import { NodeHttpHandler } from '@smithy/node-http-handler';

const keepAlive = process.env.KEEP_ALIVE !== '0';
const requestHandler = new NodeHttpHandler({ httpsAgent: new https.Agent({ keepAlive }) });
const documentClient = DynamoDBDocumentClient.from(new DynamoDBClient({ requestHandler }));

export const handler = async () => {
  const started = performance.now();
  const { Item } = await documentClient.send(new GetCommand({ TableName: 'test', Key: { id: 1 } }));
  const ms = performance.now() - started;
  console.log(`get: ${ms.toFixed(3)} ms`);
  return { ms, found: Item !== undefined };
};
