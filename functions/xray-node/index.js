'use strict';

// X-Ray's SDK for Node, as its guide has it: every HTTP call becomes a subsegment, and one of our own is around them.
const AWSXRay = require('aws-xray-sdk-core');
const https = AWSXRay.captureHTTPs(require('https'));

const ask = (host, target, body) =>
  new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': target };
    const request = https.request({ host, method: 'POST', path: '/', headers }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode));
    });
    request.on('error', reject);
    request.end(JSON.stringify(body));
  });

exports.handler = async (event) => {
  const host = `secretsmanager.${process.env.AWS_REGION}.amazonaws.com`;
  const status = await AWSXRay.captureAsyncFunc('work', async (subsegment) => {
    subsegment.addAnnotation('secret', event.secret);
    try {
      return await ask(host, 'secretsmanager.GetSecretValue', { SecretId: event.secret });
    } finally {
      subsegment.close();
    }
  });
  return { status };
};
