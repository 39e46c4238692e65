"""AWS's CLI and its SDKs for JavaScript, Go and Rust, unmodified: each takes one function through its life, all at once, signatures checked.

They talk through a proxy that holds every request and every answer against botocore's model of Lambda's API.
"""

import http.client
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

import botocore.session

from danki import CODE, KEY, REGION, SECRET, Danki, conflicts, package

INSTALLED = "target/conformance/lambda-api"
CLIENTS = {
    "cli": [sys.executable, "conformance/lambda-api/cli.py"],
    "node": ["node", f"{INSTALLED}/node/life.mjs"],
    "go": [f"{INSTALLED}/go/life"],
    "rust": [f"{INSTALLED}/rust/debug/conformance-lambda-api"],
}
PATIENCE = 120
STREAM = package({"index.mjs": """
export const handler = awslambda.streamifyResponse(async (event, stream) => {
  stream.write('one\\n');
  await new Promise((done) => setTimeout(done, 50));
  stream.end('two\\n');
});
"""})


class Model:
    """botocore's model of Lambda: which operation a request is, and what in its body or answer the model does not have."""

    def __init__(self):
        service = botocore.session.get_session().get_service_model("lambda")
        self.operations = []
        for name in service.operation_names:
            operation = service.operation_model(name)
            path = operation.http["requestUri"].split("?")[0].rstrip("/")
            pattern = re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path))
            self.operations.append((operation.http["method"], re.compile(pattern + "/?\\Z"), operation))

    def operation(self, method, path):
        for its, pattern, operation in self.operations:
            if its == method and pattern.match(path):
                return operation
        return None

    def problems(self, method, path, sent, status, headers, got):
        operation = self.operation(method, path)
        if operation is None:
            yield f"{method} {path} is no operation of Lambda"
            return
        if sent and operation.input_shape and "payload" not in operation.input_shape.serialization:
            yield from body(operation.input_shape, sent, f"{operation.name}'s request")
        if status >= 400:
            names = {shape.name for shape in operation.error_shapes} | {"ValidationException", "OperationNotOfferedByDanki"}
            if headers.get("x-amzn-ErrorType") not in names:
                yield f"{operation.name} cannot fail with {headers.get('x-amzn-ErrorType')}"
            return
        wanted = operation.http.get("responseCode", 200)
        members = operation.output_shape.members.values() if operation.output_shape else ()
        varies = any(member.serialization.get("location") == "statusCode" for member in members)
        if status != wanted and not varies:
            yield f"{operation.name} answers {wanted}, not {status}"
        if got and operation.output_shape and "payload" not in operation.output_shape.serialization:
            yield from body(operation.output_shape, got, f"{operation.name}'s answer")


def body(shape, text, place):
    located = {name for name, member in shape.members.items() if "location" in member.serialization}
    required = [name for name in shape.required_members if name not in located]
    value = json.loads(text)
    for problem in conflicts(value, shape, place, located):
        if not any(problem == f"{place}.{name} is required" for name in located):
            yield problem
    for name in required:
        if value.get(name) is None:
            yield f"{place}.{name} is required"


class Watch(http.server.ThreadingHTTPServer):
    """Passes requests on to danki, and keeps what is wrong with them or their answers."""

    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), Passing)
        self.upstream, self.model, self.problems, self.seen = port, Model(), [], set()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Passing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        sent = self.rfile.read(int(self.headers.get("content-length") or 0))
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.upstream, timeout=PATIENCE)
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            upstream.putheader(name, value)
        upstream.endheaders(sent)
        answer = upstream.getresponse()
        self.send_response_only(answer.status)
        streams = answer.chunked
        got = b"" if streams else answer.read()
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        if streams:
            self.send_header("transfer-encoding", "chunked")
        elif answer.status != 204:
            self.send_header("content-length", str(len(got)))
        self.end_headers()
        while streams and (chunk := answer.read1()):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n" if streams else got)
        upstream.close()
        if f"/{REGION}/lambda/aws4_request" in self.headers.get("authorization", ""):
            self.hold(sent, answer, got)

    def hold(self, sent, answer, got):
        path = urllib.parse.urlsplit(self.path).path
        agent = self.headers.get("user-agent", "")
        for problem in self.server.model.problems(self.command, path, sent, answer.status, answer.headers, got):
            self.server.problems.append(f"{problem} ({agent.split()[0] if agent else 'nobody'})")
        operation = self.server.model.operation(self.command, path)
        self.server.seen.add((agent.split("/")[0].split(" ")[0], operation and operation.name))

    do_GET = do_POST = do_PUT = do_DELETE = pass_on

    def log_message(self, *_):
        pass


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.danki = Danki("--pc-delay", "1", "--time-scale", "10", "--verify-signatures")
        cls.addClassCleanup(cls.danki.stop)
        cls.watch = Watch(cls.danki.port)
        cls.addClassCleanup(cls.watch.server_close)
        cls.addClassCleanup(cls.watch.shutdown)
        dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(dir.cleanup)
        zips = {"ECHO_ZIP": CODE, "STREAM_ZIP": STREAM}
        for name, content in zips.items():
            with open(os.path.join(dir.name, name), "wb") as file:
                file.write(content)
        environment = {
            **{name: os.path.join(dir.name, name) for name in zips},
            "AWS_ENDPOINT_URL": cls.watch.url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": REGION, "AWS_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "PATH": os.environ["PATH"], "HOME": dir.name,
        }
        cls.running = {
            name: subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for name, command in CLIENTS.items() if os.path.exists(f"{INSTALLED}/{name}/installed")
        }
        for process in cls.running.values():
            cls.addClassCleanup(end, process)

    def life(self, name):
        """The client has gone through all of it, and its requests and their answers are the model's."""
        if name not in self.running:
            self.skipTest(f"{name} is not installed: conformance/README.md")
        said, _ = self.running[name].communicate(timeout=PATIENCE)
        self.assertEqual((said.strip().splitlines() or [""])[-1], "all fine", said)

    def test_1_the_cli(self):
        self.life("cli")

    def test_2_the_sdk_for_javascript(self):
        self.life("node")

    def test_3_the_sdk_for_go(self):
        self.life("go")

    def test_4_the_sdk_for_rust(self):
        self.life("rust")

    def test_5_requests_and_answers_are_the_model_s(self):
        if not self.running:
            self.skipTest("no client is installed")
        self.assertGreater(len(self.watch.seen), 15)
        self.assertEqual(self.watch.problems, [])


def end(process):
    process.kill()
    process.wait()
    process.stdout.close()


if __name__ == "__main__":
    unittest.main()
