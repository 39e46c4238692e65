"""One handler per case, named after it. No dependencies: the cause must be in plain sight. REMOVED=1 takes it away."""

import http.client
import http.server
import json
import os
import socket
import ssl
import threading
import time

REMOVED = os.environ.get("REMOVED") == "1"
REGION = os.environ["AWS_REGION"]
AUTH = "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=00"
CONTEXT = None
KEPT = {}


def burn(ms):
    """CPU time, not wall time: a throttle must not shorten the work."""
    end = time.process_time() + ms / 1000
    while time.process_time() < end:
        pass


def connect(service):
    global CONTEXT
    CONTEXT = CONTEXT or ssl.create_default_context()
    return http.client.HTTPSConnection(f"{service}.{REGION}.amazonaws.com", context=CONTEXT)


def call(connection, service, target, body):
    headers = {
        "content-type": "application/x-amz-json-1.1" if service != "dynamodb" else "application/x-amz-json-1.0",
        "x-amz-target": target,
        "x-amz-date": "20260101T000000Z",
        "authorization": AUTH.format(service),
    }
    connection.request("POST", "/", json.dumps(body), headers)
    response = connection.getresponse()
    response.read()
    return response.status


def get(connection):
    return call(connection, "dynamodb", "DynamoDB_20120810.GetItem", {"TableName": "test", "Key": {"id": {"N": "1"}}})


def kept(service="dynamodb"):
    if service not in KEPT:
        KEPT[service] = connect(service)
    return KEPT[service]


def one_kept(event, context):
    return get(kept())


def client_per_invocation(event, context):
    if REMOVED:
        return get(kept())
    connection = connect("dynamodb")
    status = get(connection)
    connection.close()
    return status


def client_recreated(event, context):
    for _ in range(4):
        client_per_invocation(event, context)


SESSION = None


def tls_not_resumed(event, context):
    """A new connection per call; REMOVED resumes the session of the one before."""
    global SESSION
    connection = connect("dynamodb")
    plain = http.client.HTTPConnection.connect
    plain(connection)
    connection.sock = CONTEXT.wrap_socket(
        connection.sock, server_hostname=connection.host, session=SESSION if REMOVED else None
    )
    status = get(connection)
    SESSION = connection.sock.session
    connection.close()
    return status


def throttled(event, context):
    burn(0 if REMOVED else 25)


def fetch(service, target, body):
    if REMOVED and service in VALUES:
        return VALUES[service]
    VALUES[service] = call(kept(service), service, target, body)
    return VALUES[service]


VALUES = {}


def secret(event, context):
    return fetch("secretsmanager", "secretsmanager.GetSecretValue", {"SecretId": "app/secret"})


def parameter(event, context):
    return fetch("ssm", "AmazonSSM.GetParameter", {"Name": "/app/parameter"})


class Extension(http.server.BaseHTTPRequestHandler):
    """Stands for an extension: an answer from its cache, for some CPU."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        burn(1)
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


EXTENSION = []


def extension_hits(event, context):
    """Thirty answers from localhost, each told as X-Ray's SDK tells it; `REMOVED` asks once."""
    if not EXTENSION:
        EXTENSION.append(http.server.HTTPServer(("127.0.0.1", 0), Extension))
        threading.Thread(target=EXTENSION[0].serve_forever, daemon=True).start()
    host, port = os.environ["AWS_XRAY_DAEMON_ADDRESS"].split(":")
    daemon = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    root = dict(part.split("=") for part in os.environ["_X_AMZN_TRACE_ID"].split(";"))
    for n in range(1 if REMOVED else 30):
        connection = http.client.HTTPConnection("127.0.0.1", EXTENSION[0].server_address[1])
        from_s = time.time()
        connection.request("GET", "/secretsmanager/get")
        connection.getresponse().read()
        to_s = time.time()
        connection.close()
        document = {"id": f"{int(from_s * 1e6):016x}"[-16:], "name": "localhost", "namespace": "remote", "type": "subsegment", "trace_id": root["Root"],
                    "parent_id": root["Parent"], "start_time": from_s, "end_time": to_s}
        daemon.sendto(b'{"format": "json", "version": 1}\n' + json.dumps(document).encode(), (host, int(port)))
    daemon.close()


def timeouts(event, context):
    time.sleep(0.01 if REMOVED else 3)


def memory(event, context):
    # Touched, so that it counts.
    KEPT.clear()
    KEPT["bytes"] = b"x" * ((1 if REMOVED else 105) * 1024 * 1024)


def echo(event, context):
    return event


READY = False


def set_up():
    global READY
    if not READY:
        burn(120)
    READY = True


def lazy(event, context):
    set_up()


HANDLER = os.environ.get("_HANDLER", "")
if HANDLER.endswith(".lazy") and REMOVED:
    set_up()


def init_heavy(event, context):
    return "ready"


if HANDLER.endswith(".init_heavy") and not REMOVED:
    burn(350)


def init_connection(event, context):
    """A connection made in init; without REMOVED the first request comes long after it."""
    try:
        return get(kept())
    except (http.client.HTTPException, OSError):
        KEPT.clear()
        return get(kept())


if HANDLER.endswith(".init_connection"):
    get(kept())
    time.sleep(0 if REMOVED else 2.6)


def from_extension(event, context):
    """A secret from the extension beside the function; whether that keeps it is the case's setting."""
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ.get("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT", "2773")))
    connection.request("GET", "/secretsmanager/get?secretId=app/secret", headers={"X-Aws-Parameters-Secrets-Token": os.environ["AWS_SESSION_TOKEN"]})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != 200:
        raise RuntimeError(body.decode())
