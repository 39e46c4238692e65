"""A running `danki up`, clients for it, and zips to deploy: what every test here begins with.

Answers are held against botocore's service model: a member that the model does not have, or of another type, fails the test.
"""

import datetime
import io
import json
import os
import re
import signal
import subprocess
import threading
import time
import unittest
import zipfile

import boto3
from botocore.config import Config
from botocore.parsers import RpcV2CBORParser

DANKI = os.environ.get("DANKI", "target/release/danki")
REGION = "us-east-1"
ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/test"
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

# One function for all tests: what it does is in its event.
HANDLER = '''
import json, os, sys, time
CREATED = time.time()
if os.environ.get("FAIL_INIT"):
    raise RuntimeError("init fails as asked")
COUNT = 0

def handler(event, context):
    global COUNT
    COUNT += 1
    op = event.get("op") if isinstance(event, dict) else None
    if op == "fail":
        raise ValueError("boom")
    if op == "sleep":
        time.sleep(event["s"])
    if op == "exit":
        sys.stdout.flush()
        os._exit(event.get("code", 1))
    if op == "large":
        return "x" * event["bytes"]
    if op == "none":
        return None
    if op == "log":
        print(event["text"], flush=True)
    if op == "context":
        client = context.client_context
        return {"id": context.aws_request_id, "arn": context.invoked_function_arn, "version": context.function_version,
                "memory": context.memory_limit_in_mb, "custom": getattr(client, "custom", None)}
    if op == "env":
        return {"env": {name: os.environ.get(name) for name in event["names"]}, "count": COUNT}
    return event
'''


def package(files):
    """A zip of these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


CODE = package({"app.py": HANDLER})


def lines(path):
    """The JSON lines of a file; none if it is not there."""
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file]


class Danki:
    """A `danki up` on a free port."""

    def __init__(self, *flags):
        self.process = subprocess.Popen(
            [DANKI, "up", "--port", "0", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        first = self.process.stdout.readline()
        if not first.strip():
            raise RuntimeError(f"danki up did not start: {self.process.stderr.read()}")
        self.url = first.split()[-1]
        self.port = int(self.url.rsplit(":", 1)[1])
        self.said = []
        self.reading = threading.Thread(target=self._read, daemon=True)
        self.reading.start()

    def _read(self):
        for line in self.process.stderr:
            self.said.append(line)

    def stop(self, signum=signal.SIGINT):
        self.process.send_signal(signum)
        status = self.process.wait(timeout=60)
        self.reading.join(timeout=5)
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def client(self, service, **options):
        """A client without retries: what danki answers is what the test sees."""
        config = {"retries": {"total_max_attempts": 1}, "max_pool_connections": 200, "read_timeout": 120}
        config.update(options)
        client = boto3.client(
            service, endpoint_url=self.url, region_name=REGION, aws_access_key_id=KEY, aws_secret_access_key=SECRET,
            config=Config(**config),
        )
        client.meta.events.register("after-call.*.*", Shapes(client).check)
        return client


class Shapes:
    """Holds raw answers against the service model. botocore itself skips what it does not know."""

    def __init__(self, client):
        self.model = client.meta.service_model

    def check(self, http_response, parsed, model, **_):
        if self.model.metadata["protocol"] not in ("rest-json", "json", "smithy-rpc-v2-cbor") or http_response.status_code >= 300:
            return
        output = model.output_shape
        if output is None or "payload" in output.serialization:
            return
        if not http_response.content:
            return
        located = {name for name, shape in output.members.items() if "location" in shape.serialization}
        # A client of several protocols takes the one that it finds quickest.
        read = cbor if http_response.headers["content-type"] == "application/cbor" else json.loads
        problems = list(conflicts(read(http_response.content), output, model.name, located))
        if problems:
            raise AssertionError("; ".join(problems))


def cbor(content):
    """All that is in a body, also what the model does not have."""
    parser = RpcV2CBORParser()
    return parser.parse_data_item(parser.get_peekable_stream_from_bytes(content))


def conflicts(value, shape, place, located=()):
    """What in a value is not as its shape says."""
    kind = shape.type_name
    if kind == "structure":
        if not isinstance(value, dict):
            yield f"{place} is not an object"
            return
        names = {member.serialization.get("name", name): member for name, member in shape.members.items()}
        for name, part in value.items():
            if name not in names or name in located:
                yield f"{place}.{name} is not in the model"
            elif part is not None:
                yield from conflicts(part, names[name], f"{place}.{name}")
        for name in shape.required_members:
            if value.get(name) is None:
                yield f"{place}.{name} is required"
    elif kind == "list":
        for index, part in enumerate(value):
            yield from conflicts(part, shape.member, f"{place}[{index}]")
    elif kind == "map":
        for key, part in value.items():
            yield from conflicts(part, shape.value, f"{place}[{key}]")
    elif kind == "string":
        if not isinstance(value, str):
            yield f"{place} is not a string"
        elif shape.enum and value not in shape.enum:
            yield f"{place} is {value}, not one of {shape.enum}"
        elif value.startswith("file:"):
            pass  # danki's own kind of destination (docs/parity.md)
        elif shape.metadata.get("pattern") and not re.match(python_pattern(shape.metadata["pattern"]), value):
            yield f"{place} is {value!r}, which is not {shape.metadata['pattern']}"
    elif kind in ("integer", "long"):
        if not isinstance(value, int) or isinstance(value, bool):
            yield f"{place} is not a whole number"
    elif kind == "timestamp" and not isinstance(value, (int, float, str, datetime.datetime)):
        yield f"{place} is no time"
    elif kind in ("double", "float"):
        if not isinstance(value, (int, float)):
            yield f"{place} is not a number"
    elif kind == "boolean" and not isinstance(value, bool):
        yield f"{place} is not a boolean"


def python_pattern(pattern):
    """Java's classes of letters, separators and numbers, in Python's words."""
    for java, python in ((r"\p{L}", r"\w"), (r"\p{Z}", r"\s"), (r"\p{N}", r"\d")):
        pattern = pattern.replace(java, python)
    return f"(?:{pattern})\\Z"


class Case(unittest.TestCase):
    """Tests of one class share one danki."""

    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.danki = Danki(*cls.flags)
        cls.addClassCleanup(cls.danki.stop)
        cls.aws = cls.danki.client("lambda")

    def function(self, name=None, ready=True, **settings):
        """Creates a function that goes with the test."""
        name = name or self.id().rsplit(".", 1)[1]
        options = {
            "Runtime": "python3.11", "Handler": "app.handler", "Role": ROLE, "Timeout": 30, "MemorySize": 512,
            "Code": {"ZipFile": CODE}, **settings,
        }
        self.aws.create_function(FunctionName=name, **options)
        self.addCleanup(self.forget, name)
        if ready:
            self.aws.get_waiter("function_active_v2").wait(FunctionName=name, WaiterConfig={"Delay": 0.05, "MaxAttempts": 400})
        return name

    def forget(self, name):
        try:
            self.aws.delete_function(FunctionName=name)
        except self.aws.exceptions.ResourceNotFoundException:
            pass

    def publish(self, name, **settings):
        """Publishes a version that differs from the last one, and waits until it can be invoked."""
        self.aws.update_function_configuration(FunctionName=name, Description=str(time.monotonic()), **settings)
        self.updated(name)
        version = self.aws.publish_version(FunctionName=name)["Version"]
        self.active(name, version)
        return version

    def updated(self, name):
        self.aws.get_waiter("function_updated_v2").wait(FunctionName=name, WaiterConfig={"Delay": 0.05, "MaxAttempts": 400})

    def active(self, name, version):
        self.until(lambda: self.aws.get_function_configuration(FunctionName=name, Qualifier=version)["State"] == "Active")

    def until(self, check, patience=60):
        """Waits until something is so."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            found = check()
            if found:
                return found
            time.sleep(0.02)
        self.fail(f"not so within {patience} s")

    def invoke(self, name, event=None, **options):
        """Invokes; the answer with its payload parsed."""
        answer = self.aws.invoke(FunctionName=name, Payload=json.dumps(event if event is not None else {}), **options)
        text = answer["Payload"].read()
        answer["Payload"] = json.loads(text) if text else None
        return answer

    def refused(self, error, call, *words, **arguments):
        """The call is refused with this error name, and its message has these words."""
        with self.assertRaises(self.aws.exceptions.ClientError) as caught:
            call(**arguments)
        said = caught.exception.response
        self.assertEqual(said["Error"]["Code"], error, said)
        for word in words:
            self.assertIn(word, said["Error"]["Message"])
        return said

    def provision(self, name, qualifier, count, status="READY"):
        self.aws.put_provisioned_concurrency_config(
            FunctionName=name, Qualifier=qualifier, ProvisionedConcurrentExecutions=count)
        return self.settled(name, qualifier, status)

    def settled(self, name, qualifier, status="READY"):
        def done():
            now = self.aws.get_provisioned_concurrency_config(FunctionName=name, Qualifier=qualifier)
            return now if now["Status"] != "IN_PROGRESS" else None
        now = self.until(done)
        self.assertEqual(now["Status"], status, now)
        return now
