// One handler per case, named after it. No dependencies: the cause must be in plain sight. `REMOVED=1` takes it away.
const https = require('node:https');
const dns = require('node:dns/promises');

const REMOVED = process.env.REMOVED === '1';
const HOST = `dynamodb.${process.env.AWS_REGION}.amazonaws.com`;
const BODY = JSON.stringify({ TableName: 'test', Key: { id: { N: '1' } } });
const KEPT = new https.Agent({ keepAlive: true });

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

function burn(ms) {
  // CPU time, not wall time: a throttle must not shorten the work.
  const from = process.cpuUsage();
  for (;;) {
    const { user, system } = process.cpuUsage(from);
    if (user + system >= ms * 1000) return;
  }
}

/** One GetItem; `extra` goes to https.request. */
function get(agent, extra = {}) {
  return new Promise((done, failed) => {
    const headers = {
      'content-type': 'application/x-amz-json-1.0', 'content-length': BODY.length, 'x-amz-target': 'DynamoDB_20120810.GetItem',
      'x-amz-date': '20260101T000000Z',
      authorization: 'AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00',
    };
    if (extra.attempt) headers['amz-sdk-request'] = `attempt=${extra.attempt}; max=3`;
    const request = https.request({ host: HOST, method: 'POST', path: '/', headers, agent, ...extra }, (response) => {
      response.resume();
      response.on('end', () => done(response.statusCode));
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', failed);
    request.end(BODY);
  });
}

async function again(first, second) {
  try {
    return await first();
  } catch {
    return second();
  }
}

exports.keep_alive_off = () => get(REMOVED ? KEPT : new https.Agent({ keepAlive: false }));
exports.client_per_invocation = () => get(REMOVED ? KEPT : new https.Agent({ keepAlive: true }));
exports.client_recreated = async () => {
  for (let n = 0; n < 4; n++) await get(REMOVED ? KEPT : new https.Agent({ keepAlive: true }));
};
// Retries as SDKs do: a connection that is reset is tried again.
exports.kept = () => again(() => get(KEPT), () => get(KEPT));
exports.three_calls = async () => {
  for (let n = 0; n < 3; n++) await get(KEPT);
};
const IMPATIENT = new https.Agent({ keepAlive: true, timeout: 300 });
exports.dropped_by_client = () => get(REMOVED ? KEPT : IMPATIENT);
exports.dns_per_call = async () => {
  if (!REMOVED) await dns.lookup(HOST);
  return get(KEPT);
};
exports.sdk_timeout = () => again(() => get(KEPT, { timeout: REMOVED ? 2000 : 60 }), () => get(KEPT, { timeout: 2000 }));
// As AWS's SDKs do: each attempt says which one it is, and its patience counts from its begin, connecting included.
const attempt = (number, ms) => {
  const timer = AbortSignal.timeout(ms);
  return get(KEPT, { signal: timer, attempt: number });
};
exports.sdk_timeout_connecting = () => again(() => attempt(1, REMOVED ? 2000 : 220), () => attempt(2, 2000));
exports.faults = async () => {
  for (let n = 0; n < 4; n++) if ((await get(KEPT)) === 200) return;
  throw new Error('no answer');
};
exports.throttled = () => burn(REMOVED ? 0 : 40);
exports.hold = () => sleep(200);
exports.wait = () => sleep(10);
exports.echo = async (event) => event;

let calls = 0;
exports.exits = async () => {
  if (!REMOVED && ++calls % 3 === 0) process.exit(1);
};
exports.fails = async () => {
  if (!REMOVED && ++calls % 3 === 0) throw new TypeError('every third');
};
exports.straggler = async () => sleep(!REMOVED && ++calls === 9 ? 900 : 12);
exports.noise = async () => sleep(process.env.VARIANT_REMOVED === '1' ? 60 : 12);

let ready = false;
const setUp = () => { if (!ready) burn(120); ready = true; };
exports.lazy = async () => setUp();
const cases = process.env._HANDLER ?? '';
if (cases.endsWith('.lazy') && REMOVED) setUp();
exports.init_heavy = async () => 'ready';
if (cases.endsWith('.init_heavy') && !REMOVED) burn(350);
