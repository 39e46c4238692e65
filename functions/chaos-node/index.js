// What a function can do wrong in Node. Event: { action: '<name>' }; each property below is an action.
const { once } = require('node:events');

const actions = {
  fine: async () => ({ pid: process.pid }),
  never_return: () => new Promise(() => setInterval(() => {}, 1000)),
  spin: () => { for (;;); },
  // The event loop runs dry while the promise is pending: Node ends by itself, with status 13.
  empty_loop: () => new Promise(() => {}),
  ignore_sigterm: () => { process.on('SIGTERM', () => {}); return actions.never_return(); },
  flood_stdout: async ({ mb = 100 }) => {
    const line = `${'x'.repeat(1023)}\n`;
    for (let i = 0; i < mb * 1024; i++) {
      if (!process.stdout.write(line)) await once(process.stdout, 'drain');
    }
    return { mb };
  },
  allocate: async ({ mb = 20 * 1024 }) => {
    const held = [];
    for (let i = 0; i < mb; i++) held.push(Buffer.alloc(1024 * 1024, i & 255));
    return { mb: held.length };
  },
  // One byte more than Lambda takes, with the two quotes of a JSON string.
  too_large: async ({ bytes = 6 * 1024 * 1024 + 101 }) => 'x'.repeat(bytes - 2),
  raise_error: async () => { throw new TypeError('chaos'); },
  reject_later: async () => { Promise.reject(new Error('nobody waits for this')); await new Promise((r) => setTimeout(r, 50)); },
  throw_later: () => new Promise(() => setTimeout(() => { throw new Error('thrown from a timer'); }, 10)),
  exit_zero: () => process.exit(0),
  exit_one: () => process.exit(1),
  kill_self: () => { process.kill(process.pid, 'SIGKILL'); return new Promise(() => {}); },
  segfault: () => { process.kill(process.pid, 'SIGSEGV'); return new Promise(() => {}); },
};

exports.handler = async (event) => actions[event.action](event);
