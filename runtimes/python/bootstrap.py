"""danki's Python runtime: loads the handler, then serves one event after the other from the Runtime API.

It behaves as AWS's managed runtime does (log format, error payloads, exit codes; lambda-platform.md §5.3, §8) with as
little CPU as possible: at 128 MB every millisecond of work costs 14 of waiting. Hence one file, no dependencies, and a plain
socket instead of http.client, whose import alone takes longer than everything here. The peer is danki's Runtime API, which
always sends a Content-Length. Python 3.8 and later.
"""

import importlib
import json
import logging
import os
import socket
import sys
import time
import traceback

API = "/2018-06-01/runtime"


class RuntimeApi:
    """One connection, one request at a time."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self._address = address
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def next(self):
        """Headers (names in lower case) and body of the next event; waits for as long as it takes."""
        return self._exchange("GET %s/invocation/next HTTP/1.1\r\nHost: %s\r\n\r\n" % (API, self._address), b"")

    def post(self, path, body, content_type="application/json", error_type=None):
        head = "POST %s%s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\n" % (API, path, self._address, content_type)
        if error_type and error_type.isascii() and error_type.isprintable():
            head += "Lambda-Runtime-Function-Error-Type: %s\r\n" % error_type
        self._exchange(head + "Content-Length: %d\r\n\r\n" % len(body), body)

    def _exchange(self, head, body):
        self._socket.sendall(head.encode() + body)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        head, body = received.split(b"\r\n\r\n", 1)
        headers = {}
        for line in head.decode().split("\r\n")[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        missing = int(headers.get("content-length", 0)) - len(body)
        if missing > 0:
            chunks = [body]
            while missing > 0:
                chunks.append(self._receive())
                missing -= len(chunks[-1])
            body = b"".join(chunks)
        return headers, body

    def _receive(self):
        data = self._socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the Runtime API is gone")
        return data


# ---- Log ------------------------------------------------------------------------------------------------------------


class LogHandler(logging.Handler):
    """`[LEVEL]<TAB>time<TAB>request id<TAB>message` on standard output."""

    request_id = ""

    def emit(self, record):
        record.aws_request_id = self.request_id
        sys.stdout.write(self.format(record))


JSON_LOG = os.environ.get("AWS_LAMBDA_LOG_FORMAT") == "JSON"
LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


class JsonFormatter(logging.Formatter):
    """One object per line; what a call passed as `extra` is kept."""

    own = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "aws_request_id"}

    def format(self, record):
        entry = {
            "timestamp": self.formatTime(record, "%Y-%m-%dT%H:%M:%SZ"),
            "level": record.levelname,
            "message": record.getMessage(),
            "logger": record.name,
        }
        if record.exc_info and record.exc_info[0]:
            kind, error, trace = record.exc_info
            entry["errorType"] = kind.__name__
            entry["errorMessage"] = str(error)
            entry["stackTrace"] = traceback.format_tb(trace)
            entry["location"] = "%s:%s:%d" % (record.pathname, record.funcName, record.lineno)
        entry.update((name, value) for name, value in vars(record).items() if name not in self.own)
        entry["requestId"] = record.aws_request_id
        return json.dumps(entry, ensure_ascii=False, default=str) + "\n"


def set_up_logging():
    # Lines appear when they are complete, as on Lambda, not when a buffer is full.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    handler = LogHandler()
    if JSON_LOG:
        formatter = JsonFormatter()
        # Levels are for the JSON format only.
        logging.getLogger().setLevel(LEVELS.get(os.environ.get("AWS_LAMBDA_LOG_LEVEL"), logging.INFO))
    else:
        formatter = logging.Formatter(
            "[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t%(aws_request_id)s\t%(message)s\n", "%Y-%m-%dT%H:%M:%S"
        )
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.getLogger().addHandler(handler)
    return handler


def log_error(error):
    """One log event: in text its lines end with a carriage return and are indented with no-break spaces."""
    if JSON_LOG:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        entry = dict({"timestamp": now, "log_level": "ERROR"}, **error)
        sys.stdout.write(json.dumps(entry, ensure_ascii=False) + "\n")
        return
    lines = ["[ERROR] %s: %s" % (error["errorType"], error["errorMessage"]), "Traceback (most recent call last):"]
    for line in "\n".join(entry.rstrip("\n") for entry in error["stackTrace"]).splitlines():
        text = line.lstrip(" ")
        lines.append("\u00a0" * (len(line) - len(text)) + text)
    sys.stdout.write("\r".join(lines) + "\n")


# ---- Errors ---------------------------------------------------------------------------------------------------------


class Fault(Exception):
    """An error that the runtime itself finds."""

    def __init__(self, kind, message, trace=()):
        super().__init__(message)
        self.kind = "Runtime." + kind
        self.trace = list(trace)


def error_payload(error, request_id=""):
    if isinstance(error, Fault):
        kind, stack = error.kind, error.trace
    else:
        kind = type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)
        while len(frames) > 1 and frames[0].filename == __file__:
            frames.pop(0)
        stack = traceback.format_list(frames)
    return {"errorMessage": str(error), "errorType": kind, "requestId": request_id, "stackTrace": stack}


# ---- Handler --------------------------------------------------------------------------------------------------------


def load_handler(name):
    """The function that `pkg/mod.fn` names."""
    module_name, dot, function_name = name.rpartition(".")
    if not dot:
        raise Fault(
            "MalformedHandlerName", "Bad handler '%s': not enough values to unpack (expected 2, got 1)" % name
        )
    if module_name.split(".")[0] in sys.builtin_module_names:
        raise Fault("BuiltInModuleConflict", "Cannot use built-in module %s as a handler module" % module_name)
    try:
        module = importlib.import_module(module_name.replace("/", "."))
    except ImportError as e:
        raise Fault("ImportModuleError", "Unable to import module '%s': %s" % (module_name, e))
    except SyntaxError as e:
        trace = ['  File "%s" Line %s\n    %s' % (e.filename, e.lineno, e.text)]
        raise Fault("UserCodeSyntaxError", "Syntax error in module '%s': %s" % (module_name, e), trace)
    try:
        return getattr(module, function_name)
    except AttributeError:
        raise Fault("HandlerNotFound", "Handler '%s' missing on module '%s'" % (function_name, module_name))


def set_up_path(task_root):
    """The function's code first, then its layers."""
    version = "python%d.%d" % sys.version_info[:2]
    layers = ["/opt/python/lib/%s/site-packages" % version, "/opt/python"]
    sys.path[0:1] = [task_root] + layers  # instead of this file's folder


# ---- Invocations ----------------------------------------------------------------------------------------------------


class Record:
    """Attributes from a dictionary; those that it lacks are None."""

    def __init__(self, names, values):
        for name, key in names.items():
            setattr(self, name, values.get(key))

    def __repr__(self):
        return "%s(%s)" % (type(self).__name__, vars(self))


class CognitoIdentity(Record):
    pass


class ClientContext(Record):
    pass


class Client(Record):
    pass


IDENTITY = {"cognito_identity_id": "cognitoIdentityId", "cognito_identity_pool_id": "cognitoIdentityPoolId"}
CLIENT_CONTEXT = {name: name for name in ("custom", "env", "client")}
CLIENT = {
    name: name
    for name in ("installation_id", "app_title", "app_version_name", "app_version_code", "app_package_name")
}


class LambdaContext:
    def __init__(self, headers):
        self.aws_request_id = headers.get("lambda-runtime-aws-request-id")
        self.invoked_function_arn = headers.get("lambda-runtime-invoked-function-arn")
        self.log_group_name = os.environ.get("AWS_LAMBDA_LOG_GROUP_NAME")
        self.log_stream_name = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME")
        self.function_name = os.environ.get("AWS_LAMBDA_FUNCTION_NAME")
        self.function_version = os.environ.get("AWS_LAMBDA_FUNCTION_VERSION")
        self.memory_limit_in_mb = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
        identity = parse_header(headers, "cognito-identity", "Cognito Identity")
        self.identity = CognitoIdentity(IDENTITY, identity or {})
        client_context = parse_header(headers, "client-context", "Client Context")
        self.client_context = client_context and ClientContext(CLIENT_CONTEXT, client_context)
        if self.client_context and self.client_context.client:
            self.client_context.client = Client(CLIENT, self.client_context.client)
        self._deadline_ms = int(headers.get("lambda-runtime-deadline-ms", 0))

    def get_remaining_time_in_millis(self):
        return max(0, self._deadline_ms - int(time.time() * 1000))

    def log(self, message):
        sys.stdout.write(str(message))

    def __repr__(self):
        return "LambdaContext(%s)" % vars(self)


def parse_header(headers, name, title):
    text = headers.get("lambda-runtime-" + name)
    try:
        return json.loads(text) if text else None
    except ValueError as e:
        raise Fault("LambdaContextUnmarshalError", "Unable to parse %s JSON: %s" % (title, e))


def plain(value):
    """What `json` does not know but Lambda accepts: the numbers that boto3 reads from DynamoDB."""
    if type(value).__name__ == "Decimal":
        return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    raise TypeError("Object of type %s is not JSON serializable" % type(value).__name__)


# AWS's runtimes for Python 3.12 and later send other characters as they are.
ENCODER = json.JSONEncoder(default=plain, ensure_ascii=sys.version_info < (3, 12))


def marshal(result):
    if isinstance(result, bytes):
        return result, "application/unknown"
    try:
        return ENCODER.encode(result).encode(), "application/json"
    except Exception as e:
        raise Fault("MarshalError", "Unable to marshal response: %s" % e)


def unmarshal(body):
    try:
        return json.loads(body)
    except ValueError as e:
        raise Fault("UnmarshalError", "Unable to unmarshal input: %s" % e)


def serve_one(api, handler, headers, body):
    request_id = headers["lambda-runtime-aws-request-id"]
    if "lambda-runtime-trace-id" in headers:
        os.environ["_X_AMZN_TRACE_ID"] = headers["lambda-runtime-trace-id"]
    else:
        os.environ.pop("_X_AMZN_TRACE_ID", None)
    try:
        context = LambdaContext(headers)
        result, content_type = marshal(handler(unmarshal(body), context))
    except Exception as e:  # SystemExit and the like end the process, as on Lambda
        payload = error_payload(e, request_id)
        log_error(payload)
        path = "/invocation/%s/error" % request_id
        api.post(path, json.dumps(payload).encode(), error_type=payload["errorType"])
    else:
        api.post("/invocation/%s/response" % request_id, result, content_type)


def main():
    log_handler = set_up_logging()
    set_up_path(os.environ["LAMBDA_TASK_ROOT"])
    api = RuntimeApi(os.environ["AWS_LAMBDA_RUNTIME_API"])
    try:
        handler = load_handler(os.environ["_HANDLER"])
    except Exception as e:
        payload = error_payload(e)
        log_error(payload)
        api.post("/init/error", json.dumps(payload).encode(), error_type=payload["errorType"])
        sys.exit(1)
    while True:
        headers, body = api.next()
        log_handler.request_id = headers["lambda-runtime-aws-request-id"]
        serve_one(api, handler, headers, body)


if __name__ == "__main__":
    main()
