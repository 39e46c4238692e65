// CPU profile of each invocation, without a change to the function: preloaded by NODE_OPTIONS in a pass of its own.
//
// An invocation lies between the answer to the runtime's GET /next and its following GET /next, both of which pass a socket of this
// process. The profile is written before the latter, so it lengthens Duration: a profiled run answers *what*, not *how long*.
// Init is profiled too, from here to the first /next. Runtimes whose API client is not written in JavaScript are not seen.
'use strict';

const { writeFileSync } = require('node:fs');
const { Session } = require('node:inspector');
const { Socket } = require('node:net');

const DIR = process.env.DANKI_PROFILES;
const INTERVAL_US = 100;
const NEXT = 'GET /2018-06-01/runtime/invocation/next ';
const REQUEST_ID = /^lambda-runtime-aws-request-id: *(\S+)/im;

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
let running = `init-${process.env.AWS_LAMBDA_LOG_STREAM_NAME?.slice(-8) ?? process.pid}`;
session.post('Profiler.start');

const stop = () => {
  const name = running;
  running = undefined;
  session.post('Profiler.stop', (error, result) => {
    if (error) return;
    try {
      writeFileSync(`${DIR}/${name}.cpuprofile`, JSON.stringify(result.profile));
    } catch (failed) {
      process.stderr.write(`danki: no profile of ${name}: ${failed.message}\n`);
    }
  });
};

const api = new WeakSet();
const { write, emit } = Socket.prototype;
Socket.prototype.write = function (chunk, ...rest) {
  if (typeof chunk === 'string' && chunk.startsWith(NEXT)) {
    api.add(this);
    if (running !== undefined) stop();
  }
  return write.call(this, chunk, ...rest);
};
Socket.prototype.emit = function (event, chunk, ...rest) {
  if (event === 'data' && running === undefined && api.has(this)) {
    const id = REQUEST_ID.exec(chunk.subarray(0, 4_096).toString('latin1'));
    if (id !== null) {
      running = id[1];
      session.post('Profiler.start');
    }
  }
  return emit.call(this, event, chunk, ...rest);
};
