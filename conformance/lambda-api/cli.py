"""The AWS CLI: one function's life against `danki up`, whose address and keys are in the environment. It has no command that streams.

Each command goes through the CLI's own entry point, in one process: to start it anew takes it longer than all that it does here.
"""

import base64
import contextlib
import datetime
import io
import json
import os
import tempfile
import time

from awscli.clidriver import create_clidriver

os.environ.update(AWS_MAX_ATTEMPTS="1", AWS_PAGER="")
OUT = os.path.join(tempfile.mkdtemp(dir=os.environ["HOME"]), "out")
ZIP = "fileb://" + os.environ["ECHO_ZIP"]


def aws(*arguments):
    """Runs a command: its exit code, what it printed, what it complained of."""
    printed, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complained):
        code = create_clidriver().main([*arguments, "--output", "json"])
    return code, printed.getvalue(), complained.getvalue()


def done(*arguments):
    """What a command that must succeed printed, as JSON."""
    code, printed, complained = aws(*arguments)
    assert code == 0, (arguments, complained)
    return json.loads(printed) if printed.strip() else None


def on(command, *arguments):
    return ("lambda", command, "--function-name", "cli", *arguments)


def refused(error, *arguments):
    code, _, complained = aws(*arguments)
    assert code != 0 and f"({error})" in complained, (error, arguments[:4], code, complained)


def invoking(payload, *arguments):
    return (*on("invoke"), "--payload", payload, *arguments, OUT)


def payload():
    with open(OUT) as file:
        return json.load(file)


def until(holds):
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


role = done("iam", "create-role", "--role-name", "cli", "--assume-role-policy-document", "{}")["Role"]["Arn"]
create = on("create-function", "--runtime", "python3.11", "--handler", "app.handler", "--role", role, "--timeout", "30",
            "--memory-size", "512", "--zip-file", ZIP)
assert done(*create)["State"] == "Pending"
refused("ResourceConflictException", *create)
done("lambda", "wait", "function-active-v2", "--function-name", "cli")

echo = done(*invoking('{"n": 1}'))
assert (echo["StatusCode"], echo["ExecutedVersion"], payload()) == (200, "$LATEST", {"n": 1}), echo
failed = done(*invoking('{"op": "fail"}', "--log-type", "Tail"))
assert (failed["FunctionError"], payload()["errorMessage"]) == ("Unhandled", "boom"), failed
assert b"REPORT RequestId: " in base64.b64decode(failed["LogResult"])

version = done(*on("publish-version"))["Version"]
done("lambda", "wait", "published-version-active", "--function-name", "cli", "--qualifier", version)
assert done(*on("create-alias", "--name", "live", "--function-version", version))["Name"] == "live"
pc = on("get-provisioned-concurrency-config", "--qualifier", "live")
refused("ProvisionedConcurrencyConfigNotFoundException", *pc)
put = on("put-provisioned-concurrency-config", "--qualifier", "live", "--provisioned-concurrent-executions", "1")
assert done(*put)["Status"] == "IN_PROGRESS"
until(lambda: done(*pc)["Status"] == "READY")
warm = done(*invoking('{"op": "env", "names": ["AWS_LAMBDA_INITIALIZATION_TYPE"]}', "--qualifier", "live"))
assert (warm["ExecutedVersion"], payload()["env"]) == (version, {"AWS_LAMBDA_INITIALIZATION_TYPE": "provisioned-concurrency"})

# An event that fails is tried again under its id.
done(*on("put-function-event-invoke-config", "--maximum-retry-attempts", "1"))
assert done(*invoking('{"op": "fail", "mark": "asynchronous"}', "--invocation-type", "Event"))["StatusCode"] == 202

refused("ResourceNotFoundException", "lambda", "get-function", "--function-name", "nobody")
refused("InvalidParameterValueException", *on("update-function-configuration", "--runtime", "java21"))
refused("InvalidRequestContentException", *invoking("no json"))
refused("PreconditionFailedException", *on("update-function-configuration", "--timeout", "5", "--revision-id", "stale"))
with open(OUT + ".large", "w") as file:
    json.dump("x" * 6291456, file)
refused("RequestTooLargeException", *invoking(f"file://{OUT}.large"))

now = datetime.datetime.now(datetime.timezone.utc)
span = ("--start-time", (now - datetime.timedelta(hours=2)).isoformat(), "--end-time", (now + datetime.timedelta(hours=1)).isoformat())
errors = ("cloudwatch", "get-metric-statistics", "--namespace", "AWS/Lambda", "--metric-name", "Errors", "--period", "60",
          "--dimensions", "Name=FunctionName,Value=cli", "--statistics", "Sum", *span)
until(lambda: sum(point["Sum"] for point in done(*errors)["Datapoints"]) == 3)
reports = done("logs", "filter-log-events", "--log-group-name", "/aws/lambda/cli", "--filter-pattern", "REPORT")
assert len(reports["events"]) == 5, reports

done(*on("delete-provisioned-concurrency-config", "--qualifier", "live"))
done(*on("put-function-concurrency", "--reserved-concurrent-executions", "0"))
refused("TooManyRequestsException", *invoking("{}"))
done(*on("delete-function"))
refused("ResourceNotFoundException", *on("get-function"))
print("all fine")
