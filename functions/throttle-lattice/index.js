// The loop of pwrdrvr/lambda-throttling: each iteration costs a few ms of CPU, so the gaps that the CPU quota tears into
// the wall clock show one by one. Event: { seconds, bytes }. `bytes` tunes the CPU per iteration to that of another machine.
const { createHash, randomBytes } = require('node:crypto');
const { deflateSync } = require('node:zlib');

function iterate(bytes) {
  const data = randomBytes(bytes);
  createHash('sha256').update(data).digest();
  createHash('sha512').update(deflateSync(data)).digest();
}

exports.handler = async ({ seconds = 5, bytes = 100 * 1024 }) => {
  const wallUs = [];
  const cpuUs = [];
  const cpuAtStart = process.cpuUsage();
  const started = performance.now();
  let now = started;
  let cpu = cpuAtStart.user + cpuAtStart.system;
  while (now - started < seconds * 1000) {
    iterate(bytes);
    const { user, system } = process.cpuUsage();
    const after = performance.now();
    wallUs.push(Math.round((after - now) * 1000));
    cpuUs.push(user + system - cpu);
    now = after;
    cpu = user + system;
  }
  const elapsedMs = now - started;
  const cpuMs = (cpu - cpuAtStart.user - cpuAtStart.system) / 1000;
  return { bytes, iterations: wallUs.length, elapsedMs, cpuMs, wallUs, cpuUs };
};
