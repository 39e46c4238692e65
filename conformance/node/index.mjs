// The echo that every client here serves, on AWS's runtime client for Node.

export const handler = async (event, context) => {
  if (event.op === 'fail') throw new TypeError('boom');
  if (event.op === 'context') return { id: context.awsRequestId, arn: context.invokedFunctionArn };
  if (event.op === 'twice') return event.value.repeat(2) + 'x'.repeat(100);
  return event.value;
};

export const streaming = globalThis.awslambda?.streamifyResponse(async (event, stream) => {
  const http = awslambda.HttpResponseStream.from(stream, { statusCode: 201 });
  http.write('first ');
  if (event.op === 'fail') throw new TypeError('half-way');
  http.end('second');
});
