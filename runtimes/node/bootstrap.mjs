// danki's Node runtime: loads the handler, then serves one event after the other from the Runtime API.
//
// It behaves as AWS's managed runtime does (log format, error payloads, exit codes, event loop rules; lambda-platform.md
// §5.3, §8), with as little CPU as possible: at 128 MB every millisecond of work costs 14 of waiting. Hence one file, no
// dependencies, and a connection of its own instead of node:http. The peer is danki's Runtime API, which always sends a
// Content-Length.
//
// Up to Node 22 a handler may use a callback, and what a plain function returns is ignored. From Node 24 on callbacks are
// refused and the returned value counts.

import { existsSync, readFileSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createConnection } from 'node:net';
import { basename, dirname, join, resolve } from 'node:path';
import { Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { format } from 'node:util';

const API = '/2018-06-01/runtime';
const CALLBACKS = parseInt(process.versions.node) < 24;
const EXIT_REJECTION = 128;
const EXIT_EXCEPTION = 129;

let requestId; // of the current or, between events, the last invocation
let whenIdle = () => {}; // what an empty event loop means just now

// ---- Runtime API ----------------------------------------------------------------------------------------------------

/** One connection, one request at a time. It keeps the process alive only while an answer is due. */
class RuntimeApi {
  constructor(address) {
    const colon = address.lastIndexOf(':');
    this.host = address.slice(0, colon);
    this.port = Number(address.slice(colon + 1));
    this.address = address;
    this.socket = undefined;
    this.answered = undefined;
    this.received = [];
    this.missing = 0; // bytes of the answer that have not come yet; 0 while its head is incomplete
  }

  /** Calls `answered(headers, body)`; a lost connection ends the process, as the platform is gone. */
  send(method, path, headers, body, answered) {
    this.answered = answered;
    this.socket ??= this.connect();
    this.socket.ref();
    const length = method === 'POST' ? `Content-Length: ${Buffer.byteLength(body)}\r\n` : '';
    this.socket.write(`${method} ${API}${path} HTTP/1.1\r\nHost: ${this.address}\r\n${headers}${length}\r\n${body}`);
  }

  post(path, errorType, body, answered) {
    this.send('POST', path, `Content-Type: application/json\r\n${typeHeader(errorType)}`, body, answered);
  }

  /** Begins a post whose body comes in pieces: `chunk`s, then the `last`. */
  begin(path, headers, answered) {
    this.answered = answered;
    this.socket ??= this.connect();
    this.socket.ref();
    const head = `POST ${API}${path} HTTP/1.1\r\nHost: ${this.address}\r\n${headers}`;
    this.socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`);
  }

  chunk(data, written) {
    if (data.length === 0) return written(); // it would end the body
    this.socket.cork();
    this.socket.write(`${data.length.toString(16)}\r\n`);
    this.socket.write(data);
    this.socket.write('\r\n', written);
    this.socket.uncork();
  }

  last(trailers) {
    this.socket.write(`0\r\n${trailers}\r\n`);
  }

  connect() {
    const socket = createConnection({ host: this.host, port: this.port, noDelay: true });
    socket.on('data', (chunk) => this.receive(chunk));
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', () => {
      this.socket = undefined;
      if (this.answered) process.exit(1);
    });
    return socket;
  }

  receive(chunk) {
    this.received.push(chunk);
    if ((this.missing -= chunk.length) > 0) return;
    const answer = this.received.length === 1 ? chunk : Buffer.concat(this.received);
    const end = answer.indexOf('\r\n\r\n');
    if (end < 0) {
      this.missing = 0;
      this.received = [answer];
      return;
    }
    const headers = {};
    for (const line of answer.toString('utf8', 0, end).split('\r\n').slice(1)) {
      const colon = line.indexOf(':');
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const total = end + 4 + Number(headers['content-length'] ?? 0);
    if (answer.length < total) {
      this.missing = total - answer.length;
      this.received = [answer];
      return;
    }
    this.missing = 0;
    this.received = [];
    const answered = this.answered;
    this.answered = undefined;
    this.socket.unref();
    answered(headers, answer.subarray(end + 4, total));
  }
}

/** A header, or a trailer; nothing where the type would break it. */
const typeHeader = (type) => (type && /^[ -~]+$/.test(type) ? `Lambda-Runtime-Function-Error-Type: ${type}\r\n` : '');

const api = new RuntimeApi(process.env.AWS_LAMBDA_RUNTIME_API);

// ---- Log ------------------------------------------------------------------------------------------------------------

function print(line) {
  try {
    writeSync(1, line);
  } catch (error) {
    // The function has used process.stdout, which made the pipe non-blocking, and the pipe is full.
    if (error.code === 'EAGAIN') process.stdout.write(line);
  }
}

const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'];
const JSON_LOG = process.env.AWS_LAMBDA_LOG_FORMAT === 'JSON';
// Levels are for the JSON format only.
const LOWEST = JSON_LOG ? Math.max(0, LEVELS.indexOf(process.env.AWS_LAMBDA_LOG_LEVEL)) : 0;

function patchConsole() {
  const levels = { trace: 'TRACE', debug: 'DEBUG', info: 'INFO', log: 'INFO', warn: 'WARN', error: 'ERROR', fatal: 'FATAL' };
  const line = JSON_LOG ? jsonLine : textLine;
  for (const [method, level] of Object.entries(levels)) {
    const shown = LEVELS.indexOf(level) >= LOWEST;
    console[method] = shown ? (...message) => print(line(level, message) + '\n') : () => {};
  }
}

function textLine(level, message) {
  return `${new Date().toISOString()}\t${requestId}\t${level}\t${format(...message)}`.replaceAll('\n', '\r');
}

/** One thing is logged as it is, several as text; an error among them is told apart. */
function jsonLine(level, message) {
  const record = { timestamp: new Date().toISOString(), level, requestId };
  if (message.length === 1) {
    record.message = message[0];
    try {
      return JSON.stringify(record, (_, value) => (value instanceof Error ? { ...errorFields(value), ...value } : value));
    } catch {
      record.message = format(message[0]);
      return JSON.stringify(record);
    }
  }
  record.message = format(...message);
  const error = message.find((part) => part instanceof Error);
  return JSON.stringify(error ? { ...record, ...errorFields(error) } : record);
}

function errorFields(error) {
  const stackTrace = typeof error.stack === 'string' ? error.stack.split('\n') : [];
  return { errorType: error.constructor?.name ?? 'UnknownError', errorMessage: error.message, stackTrace };
}

function logError(what, error) {
  const visible = (_, value) =>
    value instanceof Error
      ? {
          errorType: value.name,
          errorMessage: value.message,
          code: value.code,
          ...value,
          stack: typeof value.stack === 'string' ? value.stack.split('\n') : undefined,
        }
      : value;
  let text;
  try {
    text = JSON.stringify(error instanceof Error ? error : new Error(error), visible);
  } catch {
    text = JSON.stringify(payloadOf(error));
  }
  console.error(what, '\t' + text);
}

// ---- Errors ---------------------------------------------------------------------------------------------------------

/** An error whose name is AWS's `Runtime.<type>`, also in the first line of its stack. */
function fault(type, message) {
  class Fault extends Error {}
  Fault.prototype.name = `Runtime.${type}`;
  return new Fault(message);
}

function payloadOf(error) {
  try {
    const isError = error instanceof Error || (error?.name && error?.message && typeof error?.stack === 'string');
    return isError
      ? { errorType: error.name, errorMessage: error.message, trace: error.stack.split('\n') }
      : { errorType: typeof error, errorMessage: error.toString(), trace: [] };
  } catch {
    return {
      errorType: 'handled',
      errorMessage:
        'callback called with Error argument, but there was a problem while retrieving one or more of its message, name, and stack',
    };
  }
}

/** The process cannot go on. The usual connection may be in use, so the report takes another one. */
function die(what, error, code) {
  logError(what, error);
  const payload = payloadOf(error);
  const path = requestId ? `/invocation/${requestId}/error` : '/init/error';
  new RuntimeApi(api.address).post(path, payload.errorType, JSON.stringify(payload), () => process.exit(code));
}

// ---- Handler --------------------------------------------------------------------------------------------------------

/** `.js` files are ES modules where the nearest package.json says so; a node_modules folder ends the search. */
function isModulePackage(folder) {
  if (folder.endsWith('/node_modules')) return false;
  const file = join(folder, 'package.json');
  if (existsSync(file)) {
    try {
      return JSON.parse(readFileSync(file, 'utf8')).type === 'module';
    } catch {
      return false;
    }
  }
  return folder !== '/' && isModulePackage(dirname(folder));
}

function loadModule(taskRoot, folder, name) {
  const require = createRequire(import.meta.url);
  const path = resolve(taskRoot, folder, name);
  const asModule = (file) => import(pathToFileURL(file).href);
  if (existsSync(path)) return require(path);
  if (existsSync(`${path}.js`)) {
    return isModulePackage(dirname(path)) ? asModule(`${path}.js`) : require(`${path}.js`);
  }
  if (existsSync(`${path}.mjs`)) return asModule(`${path}.mjs`);
  if (existsSync(`${path}.cjs`)) return require(`${path}.cjs`);
  return require(require.resolve(name, { paths: [taskRoot, folder] }));
}

/** The function that `dir/file.export` names. */
async function loadHandler(taskRoot, handler) {
  if (handler.includes('..')) {
    const hint = 'Use absolute paths when specifying root directories in handler names.';
    throw fault('MalformedHandlerName', `'${handler}' is not a valid handler name. ${hint}`);
  }
  const file = basename(handler);
  const parts = /^([^.]*)\.(.*)$/.exec(file);
  if (!parts) throw fault('MalformedHandlerName', 'Bad handler');
  let module;
  try {
    module = await loadModule(taskRoot, handler.slice(0, handler.indexOf(file)), parts[1]);
  } catch (error) {
    if (error instanceof SyntaxError) throw fault('UserCodeSyntaxError', String(error));
    if (error?.code === 'MODULE_NOT_FOUND') throw fault('ImportModuleError', String(error));
    throw error;
  }
  const found = parts[2].split('.').reduce((value, key) => value && value[key], module);
  if (!found) throw fault('HandlerNotFound', `${handler} is undefined or not exported`);
  if (typeof found !== 'function') throw fault('HandlerNotFound', `${handler} is not a function`);
  if (!CALLBACKS && found.length === 3 && !streams(found)) {
    throw fault(
      'CallbackHandlerDeprecated',
      'ERROR: AWS Lambda has removed support for callback-based function handlers starting with Node.js 24. ' +
        'You need to modify this function to use a supported handler signature to use Node.js 24 or later. ' +
        'For more information see https://docs.aws.amazon.com/lambda/latest/dg/nodejs-handler.html.',
    );
  }
  return found;
}

// ---- Invocations ----------------------------------------------------------------------------------------------------

function contextOf(headers) {
  const header = (name) => headers[`lambda-runtime-${name}`];
  const json = (name, text) => {
    try {
      return text === undefined ? undefined : JSON.parse(text);
    } catch (error) {
      throw new Error(`Cannot parse ${name} as json: ${error}`);
    }
  };
  const deadline = Number(header('deadline-ms'));
  return {
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
    clientContext: json('ClientContext', header('client-context')),
    identity: json('CognitoIdentity', header('cognito-identity')),
    invokedFunctionArn: header('invoked-function-arn'),
    awsRequestId: header('aws-request-id'),
    getRemainingTimeInMillis: () => deadline - Date.now(),
  };
}

function serve(handler) {
  api.send('GET', '/invocation/next', '', '', (headers, body) => {
    requestId = headers['lambda-runtime-aws-request-id'];
    const trace = headers['lambda-runtime-trace-id'];
    if (trace) process.env._X_AMZN_TRACE_ID = trace;
    else delete process.env._X_AMZN_TRACE_ID;
    const next = () => serve(handler);
    (streams(handler) ? invokeStreaming : CALLBACKS ? invokeWithCallback : invoke)(handler, headers, body, next);
  });
}

function respond(result, next) {
  let text;
  try {
    text = JSON.stringify(result === undefined ? null : result) ?? '';
  } catch {
    fail(new Error('Unable to stringify response body'), next);
    return;
  }
  api.post(`/invocation/${requestId}/response`, undefined, text, next);
}

function fail(error, next) {
  logError('Invoke Error', error);
  const payload = payloadOf(error);
  api.post(`/invocation/${requestId}/error`, payload.errorType, JSON.stringify(payload), next);
}

function neverSettled() {
  return fault(
    'NodeJsExit',
    'The Lambda runtime client detected an unexpected Node.js exit code. This is most commonly caused by a Promise that was ' +
      'never settled. For more information, see https://nodejs.org/docs/latest/api/process.html#exit-codes',
  );
}

/** Node 24 and later. */
async function invoke(handler, headers, body, next) {
  let ended = false;
  const end = (how, value) => {
    if (ended) return;
    ended = true;
    whenIdle = () => {};
    how(value, next);
  };
  whenIdle = () => end(fail, neverSettled());
  try {
    end(respond, await handler(JSON.parse(body.toString()), contextOf(headers)));
  } catch (error) {
    end(fail, error);
  }
}

/** Up to Node 22: a promise, a callback, context.done and its kin, or nothing until the event loop is empty. */
function invokeWithCallback(handler, headers, body, next) {
  let ended = false;
  let waits = true;
  const end = (how, value) => {
    whenIdle = () => {};
    how(value, next);
  };
  const once = (settle) => (...args) => {
    if (ended) return;
    ended = true;
    settle(...args);
  };
  const done = (error, result) => (error == null ? end(respond, result) : end(fail, error));
  const callback = once((error, result) => {
    if (error != null || !waits) done(error, result);
    else whenIdle = () => setImmediate(() => end(respond, result));
  });
  whenIdle = once(() => {
    const isAsync = handler.constructor?.name === 'AsyncFunction';
    if (isAsync) end(fail, neverSettled());
    else end(respond, null);
  });
  try {
    const context = Object.defineProperty(contextOf(headers), 'callbackWaitsForEmptyEventLoop', {
      enumerable: true,
      get: () => waits,
      set: (value) => (waits = value),
    });
    context.done = once(done);
    context.succeed = once((result) => done(null, result));
    context.fail = once((error) => done(error ?? 'handled'));
    const result = handler(JSON.parse(body.toString()), context, callback);
    if (typeof result?.then === 'function') result.then(context.succeed, context.fail);
  } catch (error) {
    callback(error);
  }
}

// ---- Streaming ------------------------------------------------------------------------------------------------------

const STREAMING = Symbol.for('aws.lambda.runtime.handler.streaming');
const HTTP_INTEGRATION = 'application/vnd.awslambda.http-integration-response';
const streams = (handler) => handler[STREAMING] === 'response';

globalThis.awslambda = {
  /** Marks `async (event, responseStream, context) => …`. */
  streamifyResponse(handler, options) {
    handler[STREAMING] = 'response';
    handler.highWaterMark = options?.highWaterMark;
    return handler;
  },
  HttpResponseStream: {
    /** `metadata` (statusCode, headers, cookies) goes before the body. */
    from(stream, metadata) {
      stream.setContentType(HTTP_INTEGRATION);
      stream.prelude = Buffer.concat([Buffer.from(JSON.stringify(metadata)), Buffer.alloc(8)]);
      return stream;
    },
  },
};

/** What a streaming handler writes to. The post begins with its first byte, or its end. */
class ResponseStream extends Writable {
  constructor(highWaterMark, answered) {
    super({ highWaterMark });
    this.contentType = 'application/octet-stream';
    this.prelude = undefined;
    this.begun = false;
    this.answered = answered;
  }

  setContentType(contentType) {
    if (this.begun) throw fault('InvalidStreamingOperation', 'Cannot set content-type, too late.');
    this.contentType = contentType;
  }

  begin() {
    if (this.begun) return;
    this.begun = true;
    const rest =
      'Lambda-Runtime-Function-Response-Mode: streaming\r\n' +
      'Trailer: Lambda-Runtime-Function-Error-Type, Lambda-Runtime-Function-Error-Body\r\n';
    api.begin(`/invocation/${requestId}/response`, `Content-Type: ${this.contentType}\r\n${rest}`, this.answered);
    if (this.prelude) api.chunk(this.prelude, () => {});
  }

  _write(chunk, encoding, written) {
    this.begin();
    api.chunk(chunk, () => written());
  }

  _final(done) {
    this.begin();
    done();
  }
}

/** It is over when the handler has returned and the stream has ended; the answer to the post may come before either is known here. */
async function invokeStreaming(handler, headers, body, next) {
  let answered;
  const taken = new Promise((resolve) => (answered = resolve));
  const stream = new ResponseStream(handler.highWaterMark, answered);
  const ended = new Promise((resolve, reject) => stream.on('finish', resolve).on('error', reject));
  ended.catch(() => {}); // it may fail before anybody waits for it
  const idle = new Promise((_, reject) => (whenIdle = () => reject(neverSettled())));
  try {
    await Promise.race([handler(JSON.parse(body.toString()), stream, contextOf(headers)), idle]);
    await Promise.race([ended, idle]);
    api.last('');
  } catch (error) {
    if (!stream.begun) return fail(error, next);
    logError('Invoke Error', error);
    const payload = payloadOf(error);
    const trailer = Buffer.from(JSON.stringify(payload)).toString('base64');
    api.last(`${typeHeader(payload.errorType)}Lambda-Runtime-Function-Error-Body: ${trailer}\r\n`);
  } finally {
    whenIdle = () => {};
  }
  await taken;
  next();
}

// ---- Start ----------------------------------------------------------------------------------------------------------

patchConsole();
process.on('uncaughtException', (error) => die('Uncaught Exception', error, EXIT_EXCEPTION));
process.on('unhandledRejection', (reason, promise) => {
  const error = fault('UnhandledPromiseRejection', String(reason));
  die('Unhandled Promise Rejection', Object.assign(error, { reason, promise }), EXIT_REJECTION);
});
process.on('beforeExit', () => whenIdle());

loadHandler(process.env.LAMBDA_TASK_ROOT, process.env._HANDLER).then(serve, (error) =>
  die(CALLBACKS ? 'Uncaught Exception' : 'Init Error', error, EXIT_EXCEPTION),
);
