import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';

// SDK v3 keeps connections alive by default. Its agent has no idle timeout of its own: Node's *global* agent would close a
// free socket after 5 s, an agent made with `new https.Agent({ keepAlive: true })` (as the SDK does) keeps it until the
// server closes it or the server's `Keep-Alive: timeout=` hint runs out. DynamoDB sends no such hint.
const client = new DynamoDBClient({});

export const handler = async () => {
  const started = performance.now();
  const { Item } = await client.send(new GetItemCommand({ TableName: 'test', Key: { id: { N: '1' } } }));
  return { ms: performance.now() - started, found: Item !== undefined };
};
