// SDK v3 for JavaScript: one function's life against `danki up`, whose address and keys are in the environment.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { CloudWatchClient, GetMetricDataCommand } from '@aws-sdk/client-cloudwatch';
import { CloudWatchLogsClient, FilterLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { CreateRoleCommand, IAMClient } from '@aws-sdk/client-iam';
import * as λ from '@aws-sdk/client-lambda';

const FunctionName = 'javascript';
const options = { maxAttempts: 1 };
const lambda = new λ.LambdaClient(options);
const code = { ZipFile: readFileSync(process.env.ECHO_ZIP) };
const shape = { FunctionName, Runtime: 'python3.11', Handler: 'app.handler', Timeout: 30, MemorySize: 512, Code: code };
const json = (bytes) => JSON.parse(Buffer.from(bytes).toString());
const send = (Command, input) => lambda.send(new Command({ FunctionName, ...input }));
const invoke = (event, input = {}) => send(λ.InvokeCommand, { Payload: JSON.stringify(event), ...input });

async function until(what) {
  for (const end = Date.now() + 60_000; Date.now() < end; await new Promise((done) => setTimeout(done, 100))) {
    const found = await what();
    if (found) return found;
  }
  assert.fail(`not within a minute: ${what}`);
}

async function refused(Kind, status, Command, input) {
  let caught;
  await assert.rejects(send(Command, input), (error) => {
    caught = error;
    return true;
  });
  assert(caught instanceof Kind, `${caught.name}: ${caught.message}`);
  assert.equal(caught.$metadata.httpStatusCode, status);
  return caught;
}

// Creation and its waiters.
const { Role } = await new IAMClient(options).send(new CreateRoleCommand({ RoleName: FunctionName, AssumeRolePolicyDocument: '{}' }));
const made = await send(λ.CreateFunctionCommand, { ...shape, Role: Role.Arn });
assert.equal(made.State, 'Pending');
await refused(λ.ResourceConflictException, 409, λ.CreateFunctionCommand, { ...shape, Role: Role.Arn });
await λ.waitUntilFunctionActiveV2({ client: lambda, maxWaitTime: 60, minDelay: 1 }, { FunctionName });

// Invocations.
const echo = await invoke({ n: 1 }, { LogType: 'Tail' });
assert.deepEqual([echo.StatusCode, echo.ExecutedVersion, json(echo.Payload)], [200, '$LATEST', { n: 1 }]);
assert.match(Buffer.from(echo.LogResult, 'base64').toString(), /REPORT RequestId: /);
const failed = await invoke({ op: 'fail' });
assert.deepEqual([failed.StatusCode, failed.FunctionError, json(failed.Payload).errorMessage], [200, 'Unhandled', 'boom']);

// Version, alias, provisioned concurrency.
const { Version } = await send(λ.PublishVersionCommand);
await λ.waitUntilPublishedVersionActive({ client: lambda, maxWaitTime: 60, minDelay: 1 }, { FunctionName, Qualifier: Version });
await send(λ.CreateAliasCommand, { Name: 'live', FunctionVersion: Version });
const Qualifier = 'live';
await refused(λ.ProvisionedConcurrencyConfigNotFoundException, 404, λ.GetProvisionedConcurrencyConfigCommand, { Qualifier });
await send(λ.PutProvisionedConcurrencyConfigCommand, { Qualifier, ProvisionedConcurrentExecutions: 1 });
await until(async () => (await send(λ.GetProvisionedConcurrencyConfigCommand, { Qualifier })).Status === 'READY');
const warm = await invoke({ op: 'env', names: ['AWS_LAMBDA_INITIALIZATION_TYPE'] }, { Qualifier });
assert.equal(warm.ExecutedVersion, Version);
assert.equal(json(warm.Payload).env.AWS_LAMBDA_INITIALIZATION_TYPE, 'provisioned-concurrency');

// Logs; an asynchronous event that fails is tried again under the same id.
await send(λ.PutFunctionEventInvokeConfigCommand, { MaximumRetryAttempts: 1 });
const sent = await invoke({ op: 'fail' }, { InvocationType: 'Event' });
assert.equal(sent.StatusCode, 202);
const logs = new CloudWatchLogsClient(options);
const attempts = { logGroupName: '/aws/lambda/javascript', filterPattern: `"START RequestId: ${sent.$metadata.requestId}"` };
const found = () => logs.send(new FilterLogEventsCommand(attempts));

// A stream.
const streamed = { Runtime: 'nodejs20.x', Handler: 'index.handler', Code: { ZipFile: readFileSync(process.env.STREAM_ZIP) } };
await send(λ.CreateFunctionCommand, { ...shape, ...streamed, FunctionName: 'javascript-stream', Role: Role.Arn });
await λ.waitUntilFunctionActiveV2({ client: lambda, maxWaitTime: 60, minDelay: 1 }, { FunctionName: 'javascript-stream' });
const { EventStream } = await send(λ.InvokeWithResponseStreamCommand, { FunctionName: 'javascript-stream' });
let [text, complete] = ['', undefined];
for await (const event of EventStream) {
  if (event.PayloadChunk) text += Buffer.from(event.PayloadChunk.Payload).toString();
  complete = event.InvokeComplete;
}
assert.deepEqual([text, complete.ErrorCode], ['one\ntwo\n', undefined]);

// Refusals.
await refused(λ.ResourceNotFoundException, 404, λ.GetFunctionCommand, { FunctionName: 'nobody' });
await refused(λ.InvalidParameterValueException, 400, λ.CreateFunctionCommand, { ...shape, FunctionName: 'never', Role: Role.Arn, Runtime: 'java21' });
await refused(λ.InvalidRequestContentException, 400, λ.InvokeCommand, { Payload: 'no json' });
await refused(λ.RequestTooLargeException, 413, λ.InvokeCommand, { Payload: `"${'x'.repeat(6_291_456)}"` });
await refused(λ.PreconditionFailedException, 412, λ.UpdateFunctionConfigurationCommand, { Timeout: 5, RevisionId: 'stale' });
await send(λ.PutFunctionConcurrencyCommand, { ReservedConcurrentExecutions: 2 });
await refused(λ.InvalidParameterValueException, 400, λ.PutFunctionConcurrencyCommand, { ReservedConcurrentExecutions: 0 });
await send(λ.DeleteProvisionedConcurrencyConfigCommand, { Qualifier });
await until(async () => (await found()).events.length === 2);
await send(λ.PutFunctionConcurrencyCommand, { ReservedConcurrentExecutions: 0 });
const throttled = await refused(λ.TooManyRequestsException, 429, λ.InvokeCommand, {});
assert.equal(throttled.Reason, 'ReservedFunctionConcurrentInvocationLimitExceeded');

// Metrics.
const dimensions = [{ Name: 'FunctionName', Value: FunctionName }];
const query = (MetricName, Stat) => ({
  Id: MetricName.toLowerCase(), MetricStat: { Metric: { Namespace: 'AWS/Lambda', MetricName, Dimensions: dimensions }, Period: 300, Stat },
});
const { MetricDataResults } = await new CloudWatchClient(options).send(new GetMetricDataCommand({
  StartTime: new Date(Date.now() - 600_000), EndTime: new Date(Date.now() + 60_000),
  MetricDataQueries: [query('Invocations', 'Sum'), query('Throttles', 'Sum')],
}));
const sums = MetricDataResults.map(({ Values }) => Values.reduce((a, b) => a + b));
assert.deepEqual(sums, [5, 1]);
assert(MetricDataResults[0].Timestamps[0] instanceof Date);

// The end.
await send(λ.DeleteFunctionCommand);
await refused(λ.ResourceNotFoundException, 404, λ.GetFunctionCommand, {});
console.log('all fine');
