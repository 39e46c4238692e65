"""Secrets Manager and Parameter Store, as much as the clients here ask for. Prints its port, then serves until stdin closes."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRETS = {
    ("prod/db", None): '{"user":"app"}',
    ("prod/db", "AWSPREVIOUS"): '{"user":"before"}',
}
PARAMETERS = {"/app/url": "https://app.example?a=1&b=<2>"}


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        operation = self.headers["X-Amz-Target"].split(".")[1]
        signed = self.headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=")
        value = None
        if operation == "GetSecretValue" and signed:
            value = SECRETS.get((asked["SecretId"], asked.get("VersionStage")))
            found = {"ARN": "arn", "Name": asked["SecretId"], "SecretString": value, "VersionId": "1", "CreatedDate": 1.5e9}
        elif operation == "GetParameter" and signed:
            value = PARAMETERS.get(asked["Name"])
            found = {"Parameter": {"Name": asked["Name"], "Type": "String", "Value": value, "Version": 1,
                                   "ARN": "arn", "DataType": "text", "LastModifiedDate": 1.5e9}}
        if value is None:
            self.answer(400, {"__type": "ResourceNotFoundException", "message": "no such thing"})
        else:
            self.answer(200, found)

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
