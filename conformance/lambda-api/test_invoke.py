"""Invocations: synchronous, streamed, asynchronous with retries and destinations; errors, limits, logs; the services around Lambda."""

import base64
import concurrent.futures
import json
import os
import subprocess
import tempfile
import time
import unittest

from danki import ACCOUNT, CODE, DANKI, ROLE, Case, Danki, lines

ARN = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:"


class Invoke(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.aws.create_function(FunctionName="f", Runtime="python3.11", Handler="app.handler", Role=ROLE, Timeout=5,
                                MemorySize=512, Code={"ZipFile": CODE})
        cls.aws.get_waiter("function_active_v2").wait(FunctionName="f", WaiterConfig={"Delay": 0.05, "MaxAttempts": 400})

    def test_echo(self):
        answer = self.invoke("f", {"n": 1})
        self.assertEqual((answer["StatusCode"], answer["Payload"], answer["ExecutedVersion"]), (200, {"n": 1}, "$LATEST"))
        self.assertNotIn("FunctionError", answer)
        self.assertIsNone(self.invoke("f", {"op": "none"})["Payload"])
        self.assertEqual(json.loads(self.aws.invoke(FunctionName="f")["Payload"].read()), {})

    def test_a_function_error_is_an_answer(self):
        answer = self.invoke("f", {"op": "fail"})
        self.assertEqual((answer["StatusCode"], answer["FunctionError"]), (200, "Unhandled"))
        self.assertEqual((answer["Payload"]["errorType"], answer["Payload"]["errorMessage"]), ("ValueError", "boom"))

    def test_an_exit_is_an_error(self):
        answer = self.invoke("f", {"op": "exit", "code": 3})
        self.assertEqual(answer["FunctionError"], "Unhandled")
        self.assertEqual(answer["Payload"]["errorType"], "Runtime.ExitError")
        self.assertIn("exit status 3", answer["Payload"]["errorMessage"])

    def test_a_timeout_is_an_error(self):
        name = self.function(Timeout=1)
        answer = self.invoke(name, {"op": "sleep", "s": 5})
        self.assertEqual(answer["FunctionError"], "Unhandled")
        self.assertIn("Task timed out after 1.00 seconds", answer["Payload"]["errorMessage"])

    def test_an_init_error_is_an_error(self):
        name = self.function(Environment={"Variables": {"FAIL_INIT": "1"}})
        self.assertIn("init fails as asked", self.invoke(name)["Payload"]["errorMessage"])

    def test_the_log_s_tail(self):
        answer = self.invoke("f", {"op": "log", "text": "a line of mine"}, LogType="Tail")
        tail = base64.b64decode(answer["LogResult"]).decode()
        for word in ("START RequestId: ", "a line of mine", "END RequestId: ", "REPORT RequestId: ", "Billed Duration"):
            self.assertIn(word, tail)
        self.assertIn(answer["ResponseMetadata"]["RequestId"], tail)

    def test_the_context(self):
        context = base64.b64encode(json.dumps({"custom": {"k": "v"}}).encode()).decode()
        answer = self.invoke("f", {"op": "context"}, ClientContext=context)
        seen = answer["Payload"]
        self.assertEqual(seen["custom"], {"k": "v"})
        self.assertEqual(seen["id"], answer["ResponseMetadata"]["RequestId"])
        self.assertEqual((seen["arn"], seen["version"], seen["memory"]), (ARN + "f", "$LATEST", "512"))
        self.refused("InvalidRequestContentException", self.aws.invoke, "Client context", FunctionName="f", ClientContext="%%%")

    def test_a_dry_run_runs_nothing(self):
        self.assertEqual(self.aws.invoke(FunctionName="f", InvocationType="DryRun")["StatusCode"], 204)

    def test_bodies_that_are_no_json(self):
        self.refused("InvalidRequestContentException", self.aws.invoke, "Could not parse request body into json",
                     FunctionName="f", Payload=b"{no json")

    def test_bodies_that_are_too_large(self):
        said = self.refused("RequestTooLargeException", self.aws.invoke, "6291456 bytes for the InvokeFunction operation",
                            FunctionName="f", Payload=b'"' + b"x" * 6291456 + b'"')
        self.assertEqual(said["ResponseMetadata"]["HTTPStatusCode"], 413)
        self.refused("RequestTooLargeException", self.aws.invoke, FunctionName="f", InvocationType="Event",
                     Payload=b'"' + b"x" * 1048576 + b'"')

    def test_an_answer_that_is_too_large(self):
        answer = self.invoke("f", {"op": "large", "bytes": 6 * 1024 * 1024 + 200})
        self.assertEqual((answer["FunctionError"], answer["Payload"]["errorType"]), ("Unhandled", "Function.ResponseSizeTooLarge"))
        self.assertEqual(self.invoke("f", {"n": 2})["Payload"], {"n": 2})

    def test_a_stream_of_a_whole_answer(self):
        answer = self.aws.invoke_with_response_stream(FunctionName="f", Payload=b'{"n": 1}')
        events = list(answer["EventStream"])
        body = b"".join(e["PayloadChunk"]["Payload"] for e in events if "PayloadChunk" in e)
        self.assertEqual(json.loads(body), {"n": 1})
        self.assertEqual(list(events[-1]), ["InvokeComplete"])
        self.assertNotIn("ErrorCode", events[-1]["InvokeComplete"])
        failed = list(self.aws.invoke_with_response_stream(FunctionName="f", Payload=b'{"op": "fail"}')["EventStream"])
        self.assertEqual(failed[-1]["InvokeComplete"]["ErrorCode"], "Unhandled")
        self.assertIn("boom", failed[-1]["InvokeComplete"]["ErrorDetails"])

    def test_a_forced_cold_start(self):
        def count(force):
            aws = self.danki.client("lambda")
            add = lambda params, **_: params["headers"].update({"X-Danki-Force": force})
            aws.meta.events.register("before-call.lambda.Invoke", add)
            event = json.dumps({"op": "env", "names": []})
            # With its tail, the answer comes when the env is free again.
            return json.loads(aws.invoke(FunctionName="f", Payload=event, LogType="Tail")["Payload"].read())["count"]
        self.assertEqual(count("cold"), 1)
        self.assertGreater(count("warm"), 1)
        self.refused("InvalidParameterValueException", lambda: count("lukewarm"), "lukewarm")

    def test_forced_from_the_command_line(self):
        def invoke(*options, stdin='{"op": "env", "names": []}'):
            return subprocess.run([DANKI, "invoke", "f", "--port", str(self.danki.port), "--event", "-", *options],
                                  input=stdin, capture_output=True, text=True, timeout=60)
        cold = invoke("--force", "cold")
        self.assertEqual((cold.returncode, json.loads(cold.stdout)["count"]), (0, 1), cold.stderr)
        self.assertIn("REPORT RequestId: ", cold.stderr)
        self.assertIn("Init Duration", cold.stderr)
        self.assertGreater(json.loads(invoke("--force", "gap=1s").stdout)["count"], 1)
        failed = invoke(stdin='{"op": "fail"}')
        self.assertEqual((failed.returncode, json.loads(failed.stdout)["errorMessage"]), (4, "boom"))
        refused = invoke("--force", "lukewarm")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("lukewarm", refused.stderr)

    def test_a_hundred_at_once(self):
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda n: self.invoke("f", {"n": n})["Payload"]["n"], range(100)))
        self.assertEqual(answers, list(range(100)))


class Asynchronous(Case):
    flags = ("--time-scale", "10")

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.records = os.path.join(self.dir.name, "records.jsonl")

    def test_success_goes_to_its_destination(self):
        name = self.function()
        self.aws.put_function_event_invoke_config(
            FunctionName=name, DestinationConfig={"OnSuccess": {"Destination": f"file:{self.records}"}})
        answer = self.aws.invoke(FunctionName=name, InvocationType="Event", Payload=b'{"n": 7}')
        self.assertEqual((answer["StatusCode"], answer["Payload"].read()), (202, b""))
        [record] = self.until(lambda: lines(self.records))
        self.assertEqual(record["requestContext"]["condition"], "Success")
        self.assertEqual(record["requestContext"]["requestId"], answer["ResponseMetadata"]["RequestId"])
        self.assertEqual((record["requestPayload"], record["responsePayload"]), ({"n": 7}, {"n": 7}))

    def test_a_function_as_destination(self):
        last, first = self.function("last"), self.function("first")
        self.aws.put_function_event_invoke_config(
            FunctionName=last, DestinationConfig={"OnSuccess": {"Destination": f"file:{self.records}"}})
        self.aws.put_function_event_invoke_config(
            FunctionName=first, DestinationConfig={"OnSuccess": {"Destination": ARN + last}})
        self.aws.invoke(FunctionName=first, InvocationType="Event", Payload=b"{}")
        [record] = self.until(lambda: lines(self.records))
        self.assertEqual(record["requestPayload"]["requestContext"]["functionArn"], f"{ARN}{first}:$LATEST")

    def test_retries_wait_a_minute_and_keep_the_id(self):
        name = self.function()
        self.aws.put_function_event_invoke_config(
            FunctionName=name, MaximumRetryAttempts=1, DestinationConfig={"OnFailure": {"Destination": f"file:{self.records}"}})
        started = time.monotonic()
        answer = self.aws.invoke(FunctionName=name, InvocationType="Event", Payload=b'{"op": "fail"}')
        [record] = self.until(lambda: lines(self.records))
        self.assertGreaterEqual(time.monotonic() - started, 6)
        context = record["requestContext"]
        self.assertEqual((context["condition"], context["approximateInvokeCount"]), ("RetriesExhausted", 2))
        self.assertEqual(context["requestId"], answer["ResponseMetadata"]["RequestId"])
        self.assertEqual(record["responseContext"]["functionError"], "Unhandled")

    def test_a_dead_letter(self):
        name = self.function(DeadLetterConfig={"TargetArn": f"file:{self.records}"})
        self.aws.put_function_event_invoke_config(FunctionName=name, MaximumRetryAttempts=0)
        self.aws.invoke(FunctionName=name, InvocationType="Event", Payload=b'{"op": "fail"}')
        [letter] = self.until(lambda: lines(self.records))
        self.assertEqual((json.loads(letter["body"]), letter["attributes"]["ErrorMessage"]), ({"op": "fail"}, "boom"))

    def test_invoke_async(self):
        name = self.function()
        self.assertEqual(self.aws.invoke_async(FunctionName=name, InvokeArgs=b"{}")["Status"], 202)


class Around(Case):
    def test_a_deployment_as_tools_do_it(self):
        iam, sts, s3, logs = (self.danki.client(s) for s in ("iam", "sts", "s3", "logs"))
        self.assertEqual(sts.get_caller_identity()["Account"], ACCOUNT)
        role = iam.create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        iam.attach_role_policy(RoleName="r", PolicyArn="arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole")
        self.assertEqual(iam.get_role(RoleName="r")["Role"]["Arn"], role)
        with self.assertRaises(iam.exceptions.NoSuchEntityException):
            iam.get_role(RoleName="nobody")
        s3.create_bucket(Bucket="code")
        s3.put_object(Bucket="code", Key="app.zip", Body=CODE)
        for error, call in ((s3.exceptions.NoSuchKey, lambda: s3.get_object(Bucket="code", Key="none")),
                            (s3.exceptions.NoSuchBucket, lambda: s3.list_objects_v2(Bucket="none"))):
            with self.assertRaises(error):
                call()
        self.assertEqual(s3.get_object(Bucket="code", Key="app.zip")["Body"].read(), CODE)
        name = self.function(Role=role, Code={"S3Bucket": "code", "S3Key": "app.zip"})
        self.invoke(name, {"op": "log", "text": "needle"})
        group = f"/aws/lambda/{name}"
        [found] = self.until(lambda: group_exists(logs, group) and logs.filter_log_events(
            logGroupName=group, filterPattern="needle")["events"])
        self.assertEqual(found["message"].strip(), "needle")
        streams = logs.describe_log_streams(logGroupName=group, orderBy="LastEventTime", descending=True)["logStreams"]
        self.until(lambda: any("REPORT" in e["message"] for e in logs.get_log_events(
            logGroupName=group, logStreamName=streams[0]["logStreamName"], startFromHead=True)["events"]))
        told = subprocess.run([DANKI, "logs", name, "--port", str(self.danki.port)], capture_output=True, text=True, timeout=60)
        self.assertIn("needle", told.stdout)
        self.assertEqual(told.returncode, 0, told.stderr)

    def test_signatures_are_checked_when_asked(self):
        strict = Danki("--verify-signatures")
        self.addCleanup(strict.stop)
        good = strict.client("lambda")
        good.create_function(FunctionName="f", Runtime="python3.11", Handler="app.handler", Role=ROLE, Code={"ZipFile": CODE})
        self.assertEqual([f["FunctionName"] for f in good.list_functions(MaxItems=5)["Functions"]], ["f"])
        good.list_tags(Resource=ARN + "f")
        good._request_signer._credentials.secret_key = "wrong"
        with self.assertRaises(good.exceptions.ClientError) as caught:
            good.list_functions()
        self.assertEqual(caught.exception.response["Error"]["Code"], "InvalidSignatureException")

    def test_state_survives_and_nothing_is_left(self):
        with tempfile.TemporaryDirectory() as state:
            first = Danki("--state", state)
            aws = first.client("lambda")
            aws.create_function(FunctionName="kept", Runtime="python3.11", Handler="app.handler", Role=ROLE, Code={"ZipFile": CODE})
            aws.get_waiter("function_active_v2").wait(FunctionName="kept", WaiterConfig={"Delay": 0.05})
            aws.publish_version(FunctionName="kept")
            aws.create_alias(FunctionName="kept", Name="live", FunctionVersion="1")
            self.assertEqual(first.stop(), 0)
            second = Danki("--state", state)
            self.addCleanup(second.stop)
            aws = second.client("lambda")
            ready = lambda: aws.get_function_configuration(FunctionName="kept", Qualifier="live")["State"] == "Active"
            self.until(ready)
            call = lambda: json.loads(aws.invoke(FunctionName="kept", Qualifier="live", Payload=b'{"n": 1}')["Payload"].read())
            self.assertEqual(self.until(lambda: attempt(call)), {"n": 1})


def group_exists(logs, group):
    return logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]


def attempt(call):
    """The answer, or none while the function is being made ready."""
    try:
        return call()
    except Exception as error:
        if "state: Pending" in str(error):
            return None
        raise


if __name__ == "__main__":
    unittest.main()
