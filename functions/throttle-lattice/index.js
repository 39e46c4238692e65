// The loop of pwrdrvr/lambda-throttling: each iteration costs a few ms of CPU, so the gaps that the CPU quota tears into the wall
// clock show one by one. Event: { seconds, bytes } or { seconds, cpuMs }: with `cpuMs` the payload is sized, once per env and under
// the quota that is being looked at, so that an iteration costs that much CPU here as it did elsewhere.
const { createHash, randomBytes } = require('node:crypto');
const { deflateSync } = require('node:zlib');

const PUBLISHED_BYTES = 100 * 1024;
// The first round also warms the code up, which makes its iterations dearer than the later ones.
const SIZING_ROUNDS = 3;
const SIZING_SECONDS = 1;

function iterate(bytes) {
  const data = randomBytes(bytes);
  createHash('sha256').update(data).digest();
  createHash('sha512').update(deflateSync(data)).digest();
}

const cpuUsedUs = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

function burn(seconds, bytes) {
  const wallUs = [];
  const cpuUs = [];
  const started = performance.now();
  let now = started;
  let cpu = cpuUsedUs();
  while (now - started < seconds * 1000) {
    iterate(bytes);
    const cpuAfter = cpuUsedUs();
    const after = performance.now();
    wallUs.push(Math.round((after - now) * 1000));
    cpuUs.push(cpuAfter - cpu);
    now = after;
    cpu = cpuAfter;
  }
  return { elapsedMs: now - started, wallUs, cpuUs };
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const sizes = new Map();

function sizeFor(cpuMs) {
  if (!sizes.has(cpuMs)) {
    let size = PUBLISHED_BYTES;
    for (let round = 0; round < SIZING_ROUNDS; round++) {
      const { cpuUs } = burn(SIZING_SECONDS, size);
      size = Math.round((size * cpuMs * 1000 * cpuUs.length) / sum(cpuUs));
    }
    sizes.set(cpuMs, size);
  }
  return sizes.get(cpuMs);
}

exports.handler = async ({ seconds = 5, bytes = PUBLISHED_BYTES, cpuMs }) => {
  const size = cpuMs === undefined ? bytes : sizeFor(cpuMs);
  const { elapsedMs, wallUs, cpuUs } = burn(seconds, size);
  const iterations = wallUs.length;
  const cpuTotalMs = sum(cpuUs) / 1000;
  return {
    bytes: size,
    iterations,
    elapsedMs,
    meanMs: elapsedMs / iterations,
    cpuMsPerIteration: cpuTotalMs / iterations,
    cpuShare: cpuTotalMs / elapsedMs,
    wallUs,
    cpuUs,
  };
};
