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

// The answer to the operation of that name.
const ask = (client, commands) => (operation, request) => client.send(new commands[`${operation}Command`](request));
const askSecrets = ask(secrets, sm);
const askSsm = ask(ssm, pm);

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
const SecretId = 'js';
await askSecrets('UpdateSecret', { SecretId, Description: 'words', SecretString: 'three' });
const described = await askSecrets('DescribeSecret', { SecretId });
assert.equal(described.Description, 'words');
assert(described.CreatedDate instanceof Date);
await askSecrets('UpdateSecretVersionStage', { SecretId, VersionStage: 'mine', MoveToVersionId: made.VersionId });
assert.equal((await askSecrets('GetSecretValue', { SecretId, VersionStage: 'mine' })).SecretString, 'one');
assert.equal((await askSecrets('ListSecretVersionIds', { SecretId, IncludeDeprecated: true })).Versions.length, 3);
await askSecrets('TagResource', { SecretId, Tags: [{ Key: 'k', Value: 'v' }, { Key: 'l', Value: 'w' }] });
await askSecrets('UntagResource', { SecretId, TagKeys: ['k'] });
assert.deepEqual((await askSecrets('DescribeSecret', { SecretId })).Tags, [{ Key: 'l', Value: 'w' }]);
assert.equal((await askSecrets('GetRandomPassword', { PasswordLength: 40 })).RandomPassword.length, 40);
await assert.rejects(askSecrets('RotateSecret', { SecretId }), (error) => error instanceof sm.InvalidRequestException);
assert((await askSecrets('DeleteSecret', { SecretId })).DeletionDate instanceof Date);
await assert.rejects(askSecrets('GetSecretValue', { SecretId }), (error) => error instanceof sm.InvalidRequestException);
await askSecrets('RestoreSecret', { SecretId });
await askSecrets('DeleteSecret', { SecretId, ForceDeleteWithoutRecovery: true });

await assert.rejects(ssm.send(new pm.GetParameterCommand({ Name: '/none' })), (error) => error instanceof pm.ParameterNotFound);
await ssm.send(new pm.PutParameterCommand({ Name: '/js/p', Value: 'v', Type: 'SecureString' }));
const shown = await ssm.send(new pm.GetParameterCommand({ Name: '/js/p', WithDecryption: true }));
assert.equal(shown.Parameter.Value, 'v');
await assert.rejects(ssm.send(new pm.PutParameterCommand({ Name: '/js/p', Value: 'w', Type: 'String' })), (error) => error instanceof pm.ParameterAlreadyExists);
const below = await ssm.send(new pm.GetParametersByPathCommand({ Path: '/js', WithDecryption: true }));
assert.equal(below.Parameters.length, 1);
const Name = '/js/p';
await askSsm('PutParameter', { Name, Value: 'w', Overwrite: true });
await askSsm('LabelParameterVersion', { Name, ParameterVersion: 1, Labels: ['old'] });
assert.equal((await askSsm('GetParameter', { Name: `${Name}:old`, WithDecryption: true })).Parameter.Value, 'v');
assert.deepEqual((await askSsm('UnlabelParameterVersion', { Name, ParameterVersion: 1, Labels: ['old'] })).RemovedLabels, ['old']);
const history = await askSsm('GetParameterHistory', { Name, WithDecryption: true });
assert.deepEqual(history.Parameters.map((version) => version.Value), ['v', 'w']);
assert.deepEqual((await askSsm('GetParameters', { Names: [Name, '/none'] })).InvalidParameters, ['/none']);
const filter = { ParameterFilters: [{ Key: 'Type', Values: ['SecureString'] }] };
assert((await askSsm('DescribeParameters', filter)).Parameters.some((parameter) => parameter.Name === Name));
const resource = { ResourceType: 'Parameter', ResourceId: Name };
await askSsm('AddTagsToResource', { ...resource, Tags: [{ Key: 'k', Value: 'v' }, { Key: 'l', Value: 'w' }] });
await askSsm('RemoveTagsFromResource', { ...resource, TagKeys: ['k'] });
assert.deepEqual((await askSsm('ListTagsForResource', resource)).TagList, [{ Key: 'l', Value: 'w' }]);
await askSsm('PutParameter', { Name: '/js/q', Value: 'v', Type: 'String' });
assert.deepEqual((await askSsm('DeleteParameters', { Names: ['/js/q', '/none'] })).DeletedParameters, ['/js/q']);
await askSsm('DeleteParameter', { Name });
agent.destroy();
console.log('all fine');
