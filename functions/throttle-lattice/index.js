// The loop of pwrdrvr/lambda-throttling: each iteration costs a few ms of CPU, so the gaps that the CPU quota tears into the wall
// clock show one by one. Event: { seconds, bytes } or { seconds, cpuMs }: with `cpuMs` the payload is sized, all the time and by CPU time
// alone, so that an iteration costs that much CPU here as it did elsewhere. A list of `cpuMs` divides the run into equal stretches: on
// AWS the same payload did not cost the same all along.
const { createHash, randomBytes } = require('node:crypto');
const { deflateSync } = require('node:zlib');

const PUBLISHED_BYTES = 100 * 1024;
// Iterations that are not recorded: code gets warm, and the cost of a byte becomes known.
const WARM_UP = 20;
// Weight of the latest iteration in the cost of a byte.
const FORGET = 0.1;
// CPU that was owed or saved is made up for over so many iterations.
const SPREAD = 10;

function iterate(bytes) {
  const data = randomBytes(bytes);
  createHash('sha256').update(data).digest();
  createHash('sha512').update(deflateSync(data)).digest();
}

const cpuUsedUs = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

const fixed = (bytes) => ({ bytes: () => bytes, learn: () => {} });

let usPerByte = 0; // kept from invocation to invocation

function tuned(cpuMs) {
  const targets = [cpuMs].flat().map((ms) => ms * 1000);
  let targetUs = targets[0];
  let owedUs = 0; // CPU that the iterations so far should have cost and did not
  return {
    bytes: (progress) => {
      targetUs = targets[Math.min(targets.length - 1, Math.floor(progress * targets.length))];
      return usPerByte ? Math.round((targetUs + owedUs / SPREAD) / usPerByte) : PUBLISHED_BYTES;
    },
    learn: (bytes, us) => {
      usPerByte = usPerByte ? usPerByte + FORGET * (us / bytes - usPerByte) : us / bytes;
      owedUs = Math.max(-targetUs, Math.min(targetUs, owedUs + targetUs - us));
    },
  };
}

function burn(seconds, size, iterations = Infinity) {
  const wallUs = [];
  const cpuUs = [];
  const started = performance.now();
  let now = started;
  let cpu = cpuUsedUs();
  while (now - started < seconds * 1000 && wallUs.length < iterations) {
    const bytes = size.bytes((now - started) / (seconds * 1000));
    iterate(bytes);
    const after = performance.now();
    wallUs.push(Math.round((after - now) * 1000));
    now = after;
    // Asked after each iteration, as the published loop does: it makes the kernel settle the quota's account, and so is where the
    // process is often stopped.
    const cpuAfter = cpuUsedUs();
    cpuUs.push(cpuAfter - cpu);
    size.learn(bytes, cpuAfter - cpu);
    cpu = cpuAfter;
  }
  return { elapsedMs: performance.now() - started, wallUs, cpuUs };
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

exports.handler = async ({ seconds = 5, bytes = PUBLISHED_BYTES, cpuMs }) => {
  const size = cpuMs === undefined ? fixed(bytes) : tuned(cpuMs);
  burn(seconds, size, WARM_UP);
  const { elapsedMs, wallUs, cpuUs } = burn(seconds, size);
  const iterations = wallUs.length;
  const cpuTotalMs = sum(cpuUs) / 1000;
  return {
    bytes: size.bytes(1),
    iterations,
    elapsedMs,
    meanMs: elapsedMs / iterations,
    cpuMsPerIteration: cpuTotalMs / iterations,
    cpuShare: cpuTotalMs / elapsedMs,
    wallUs,
    cpuUs,
  };
};
