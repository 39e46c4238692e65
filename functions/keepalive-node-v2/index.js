const AWS = require('aws-sdk');

const documentClient = new AWS.DynamoDB.DocumentClient();

exports.handler = async () => {
  const started = performance.now();
  const { Item } = await documentClient.get({ TableName: 'test', Key: { id: 1 } }).promise();
  const ms = performance.now() - started;
  console.log(`get: ${ms.toFixed(3)} ms`);
  return { ms, found: Item !== undefined };
};
