// SDK v3 for JavaScript against Secrets Manager and Parameter Store. Only the agent differs from a user's: it connects to the region
// under test whatever the host name says, as DNS does in an env.
import assert from 'node:assert/strict';
import https from 'node:https';
import tls from 'node:tls';
import * as sm from '@aws-sdk/client-secrets-manager';
import * as pm from '@aws-sdk/client-ssm';
import { NodeHttpHandler } from '@smithy/node-http-handler';

const [host, port] = process.env.REGION_ADDRESS.split(':');
const agent = new https.Agent({ keepAlive: true });
agent.createConnection = (options) => tls.connect({ ...options, host, port: Number(port), servername: options.host });
const requestHandler = new NodeHttpHandler({ httpsAgent: agent });
const secrets = new sm.SecretsManagerClient({ requestHandler });
const ssm = new pm.SSMClient({ requestHandler });

const none = "Secrets Manager can't find the specified secret.";
await assert.rejects(secrets.send(new sm.GetSecretValueCommand({ SecretId: 'none' })), (error) => {
  assert(error instanceof sm.ResourceNotFoundException);
  assert.deepEqual([error.message, error.$metadata.httpStatusCode], [none, 400]);
  return true;
});
const made = await secrets.send(new sm.CreateSecretCommand({ Name: 'js', SecretString: 'one' }));
await secrets.send(new sm.PutSecretValueCommand({ SecretId: 'js', SecretBinary: new Uint8Array([0, 255]) }));
const binary = await secrets.send(new sm.GetSecretValueCommand({ SecretId: made.ARN }));
assert.deepEqual([...binary.SecretBinary], [0, 255]);
assert(binary.CreatedDate instanceof Date);
const previous = await secrets.send(new sm.GetSecretValueCommand({ SecretId: 'js', VersionStage: 'AWSPREVIOUS' }));
assert.equal(previous.SecretString, 'one');
const names = [];
for await (const page of sm.paginateListSecrets({ client: secrets, pageSize: 1 }, {})) names.push(...page.SecretList.map((s) => s.Name));
assert(names.includes('js'));
const batch = await secrets.send(new sm.BatchGetSecretValueCommand({ SecretIdList: ['js', 'none'] }));
assert.equal(batch.Errors[0].ErrorCode, 'ResourceNotFoundException');
await secrets.send(new sm.DeleteSecretCommand({ SecretId: 'js', ForceDeleteWithoutRecovery: true }));

await assert.rejects(ssm.send(new pm.GetParameterCommand({ Name: '/none' })), (error) => error instanceof pm.ParameterNotFound);
await ssm.send(new pm.PutParameterCommand({ Name: '/js/p', Value: 'v', Type: 'SecureString' }));
const shown = await ssm.send(new pm.GetParameterCommand({ Name: '/js/p', WithDecryption: true }));
assert.equal(shown.Parameter.Value, 'v');
await assert.rejects(ssm.send(new pm.PutParameterCommand({ Name: '/js/p', Value: 'w', Type: 'String' })), (error) => error instanceof pm.ParameterAlreadyExists);
const below = await ssm.send(new pm.GetParametersByPathCommand({ Path: '/js', WithDecryption: true }));
assert.equal(below.Parameters.length, 1);
await ssm.send(new pm.DeleteParameterCommand({ Name: '/js/p' }));
agent.destroy();
console.log('all fine');
