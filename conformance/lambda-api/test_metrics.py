"""CloudWatch's metrics of Lambda, read with boto3 (CBOR) and as SDKs of before 2025 read them (JSON)."""

import concurrent.futures
import datetime
import json
import time
import unittest
import urllib.error
import urllib.request

from danki import Case, package

NOW = datetime.datetime.now(datetime.timezone.utc)
SPAN = {"StartTime": NOW - datetime.timedelta(hours=1), "EndTime": NOW + datetime.timedelta(hours=1)}


class Metrics(Case):
    flags = ("--pc-delay", "1", "--time-scale", "10")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cloudwatch = cls.danki.client("cloudwatch")

    def values(self, metric, statistic="Sum", **dimensions):
        """One figure of all that there is."""
        query = {"Id": "q", "MetricStat": {"Period": 86400, "Stat": statistic, "Metric": {
            "Namespace": "AWS/Lambda", "MetricName": metric,
            "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()]}}}
        # A day's point begins at midnight.
        span = {**SPAN, "StartTime": NOW - datetime.timedelta(days=2)}
        [result] = self.cloudwatch.get_metric_data(MetricDataQueries=[query], **span)["MetricDataResults"]
        return result["Values"]

    def of(self, name, *metrics, statistic="Sum", **dimensions):
        return [sum(self.values(metric, statistic, FunctionName=name, **dimensions)) for metric in metrics]

    def test_invocations_errors_throttles_and_durations(self):
        name = self.function()
        for event in ({"n": 1}, {"op": "sleep", "s": 0.3}, {"op": "fail"}):
            self.invoke(name, event)
        self.aws.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
        self.refused("TooManyRequestsException", self.aws.invoke, FunctionName=name)
        # What is not awaited: an invocation ends after its answer.
        self.until(lambda: self.of(name, "Duration", statistic="SampleCount") == [3])
        self.assertEqual(self.of(name, "Invocations", "Errors", "Throttles"), [3, 1, 1])
        self.assertEqual(self.values("Errors", "Average", FunctionName=name), [1 / 3])
        [longest], [median], [p99] = (self.values("Duration", s, FunctionName=name) for s in ("Maximum", "p50", "p99"))
        self.assertGreaterEqual(longest, 300)
        self.assertLess(median, longest)
        self.assertAlmostEqual(p99 / longest, 1, delta=0.01)
        self.assertGreaterEqual(self.values("Invocations")[0], 3)
        self.assertEqual(self.values("Invocations", FunctionName="nobody"), [])
        self.assertEqual(self.values("Nonsense", FunctionName=name), [])

    def test_versions_and_aliases_are_resources(self):
        name = self.function()
        version = self.publish(name)
        self.aws.create_alias(FunctionName=name, Name="live", FunctionVersion=version)
        for qualifier in (version, "live", "live"):
            self.invoke(name, Qualifier=qualifier)
        self.invoke(name)
        count = lambda **dimensions: self.of(name, "Invocations", **dimensions)
        self.assertEqual(count(), [4])
        self.assertEqual(count(Resource=name), [1])
        self.assertEqual(count(Resource=f"{name}:{version}"), [1])
        self.assertEqual(count(Resource=f"{name}:live"), [2])
        self.assertEqual(count(Resource=f"{name}:live", ExecutedVersion=version), [2])
        listed = self.cloudwatch.list_metrics(
            Namespace="AWS/Lambda", MetricName="Invocations", Dimensions=[{"Name": "FunctionName", "Value": name}], RecentlyActive="PT3H")
        resources = [dict((d["Name"], d["Value"]) for d in m["Dimensions"]).get("Resource") for m in listed["Metrics"]]
        self.assertEqual(sorted(resources, key=str), sorted([None, name, f"{name}:{version}", f"{name}:live", f"{name}:live"], key=str))

    def test_concurrency(self):
        name = self.function(MemorySize=256)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda _: self.invoke(name, {"op": "sleep", "s": 3}), range(3)))
        self.assertEqual(self.values("ConcurrentExecutions", "Maximum", FunctionName=name), [3])
        for metric in ("ConcurrentExecutions", "UnreservedConcurrentExecutions", "ClaimedAccountConcurrency"):
            self.assertGreaterEqual(self.values(metric, "Maximum")[0], 3, metric)

    def test_provisioned_concurrency(self):
        name = self.function()
        version = self.publish(name)
        self.provision(name, version, 2)
        resource = {"FunctionName": name, "Resource": f"{name}:{version}"}
        self.invoke(name, Qualifier=version)
        self.assertEqual(self.values("ProvisionedConcurrencyUtilization", "Maximum", **resource), [0.5])
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda _: self.invoke(name, {"op": "sleep", "s": 2}, Qualifier=version), range(3)))
        self.assertEqual(self.values("ProvisionedConcurrentExecutions", "Maximum", **resource), [2])
        self.assertEqual(self.values("ProvisionedConcurrencyUtilization", "Maximum", **resource), [1])
        self.assertEqual(self.of(name, "ProvisionedConcurrencyInvocations", "ProvisionedConcurrencySpilloverInvocations"), [3, 1])
        self.assertGreaterEqual(self.values("ClaimedAccountConcurrency", "Maximum")[0], 2)

    def test_asynchronous_events(self):
        name = self.function(DeadLetterConfig={"TargetArn": "file:/proc/nowhere/letters"})
        self.aws.put_function_event_invoke_config(
            FunctionName=name, MaximumRetryAttempts=0, DestinationConfig={"OnFailure": {"Destination": "file:/proc/nowhere/records"}})
        for event in (b'{"n": 1}', b'{"op": "fail"}'):
            self.aws.invoke(FunctionName=name, InvocationType="Event", Payload=event)
        metrics = ("AsyncEventsReceived", "AsyncEventsDropped", "DeadLetterErrors", "DestinationDeliveryFailures")
        self.until(lambda: self.of(name, *metrics) == [2, 1, 1, 1])
        # The event that succeeds may be the later one.
        self.until(lambda: self.of(name, "AsyncEventAge", statistic="SampleCount") == [2])

    def test_a_function_that_is_its_own_destination_is_stopped(self):
        name = self.function(Code={"ZipFile": package({"app.py": "def handler(event, context):\n    return 1\n"})})
        arn = self.aws.get_function_configuration(FunctionName=name)["FunctionArn"]
        self.aws.put_function_event_invoke_config(FunctionName=name, DestinationConfig={"OnSuccess": {"Destination": arn}})
        self.aws.invoke(FunctionName=name, InvocationType="Event", Payload=b"{}")
        self.until(lambda: self.of(name, "RecursiveInvocationsDropped") == [1])
        self.assertEqual(self.of(name, "AsyncEventsReceived"), [17])

    def test_a_record_that_is_too_large_is_not_delivered(self):
        # It has the event and the answer in it: together more than an event may have.
        name = self.function()
        arn = self.aws.get_function_configuration(FunctionName=name)["FunctionArn"]
        self.aws.put_function_event_invoke_config(FunctionName=name, DestinationConfig={"OnSuccess": {"Destination": arn}})
        self.aws.invoke(FunctionName=name, InvocationType="Event", Payload=json.dumps("x" * 600_000))
        self.until(lambda: self.of(name, "DestinationDeliveryFailures") == [1])
        self.assertEqual(self.of(name, "AsyncEventsReceived"), [1])

    def test_statistics(self):
        name = self.function()
        self.invoke(name)
        ask = {"Namespace": "AWS/Lambda", "Dimensions": [{"Name": "FunctionName", "Value": name}], "Period": 60, **SPAN}
        self.until(lambda: self.of(name, "Duration", statistic="SampleCount") == [1])
        [point] = self.cloudwatch.get_metric_statistics(
            MetricName="Duration", Statistics=["SampleCount", "Average", "Sum", "Minimum", "Maximum"], ExtendedStatistics=["p90"], **ask)["Datapoints"]
        self.assertEqual((point["SampleCount"], point["Unit"], point["Timestamp"].second), (1, "Milliseconds", 0))
        self.assertEqual(len({point[s] for s in ("Average", "Sum", "Minimum", "Maximum")} | {point["ExtendedStatistics"]["p90"]}), 1)
        self.assertLess(abs((point["Timestamp"] - NOW).total_seconds()), 600)
        seconds = self.cloudwatch.get_metric_statistics(MetricName="Duration", Statistics=["Sum"], Unit="Seconds", **ask)
        self.assertEqual(seconds["Datapoints"], [], "of another unit there is nothing")

    def test_pages(self):
        name = self.function()
        self.invoke(name)
        query = lambda id: {"Id": id, "MetricStat": {"Period": 60, "Stat": "Sum", "Metric": {
            "Namespace": "AWS/Lambda", "MetricName": "Invocations", "Dimensions": [{"Name": "FunctionName", "Value": name}]}}}
        pages = self.cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=[query("a"), query("b"), {**query("c"), "ReturnData": False}], MaxDatapoints=1, **SPAN)
        found = [(r["Id"], v) for page in pages for r in page["MetricDataResults"] for v in r["Values"]]
        self.assertEqual(found, [("a", 1), ("b", 1)])

    def test_refusals(self):
        ask = {"Namespace": "AWS/Lambda", "MetricName": "Errors", "Period": 60, "Statistics": ["Sum"], **SPAN}
        def refused(error, word, call, **arguments):
            with self.assertRaises(self.cloudwatch.exceptions.ClientError) as caught:
                call(**arguments)
            self.assertEqual(caught.exception.response["Error"]["Code"], error)
            self.assertIn(word, caught.exception.response["Error"]["Message"])
        statistics = self.cloudwatch.get_metric_statistics
        refused("InvalidParameterValue", "multiples of 60", statistics, **{**ask, "Period": 61})
        refused("InvalidParameterValue", "less than", statistics, **{**ask, "EndTime": SPAN["StartTime"]})
        refused("InvalidParameterCombination", "1440", statistics, **{**ask, "StartTime": NOW - datetime.timedelta(days=9)})
        trimmed = {"Period": 60, "Stat": "tm90", "Metric": {"Namespace": "AWS/Lambda", "MetricName": "Errors"}}
        refused("InvalidParameterValue", "tm90", self.cloudwatch.get_metric_data, MetricDataQueries=[{"Id": "t", "MetricStat": trimmed}], **SPAN)
        refused("InvalidParameterValue", "expressions", self.cloudwatch.get_metric_data,
                MetricDataQueries=[{"Id": "e", "Expression": "1 + 1"}], **SPAN)
        refused("OperationNotOfferedByDanki", "PutMetricData", self.cloudwatch.put_metric_data,
                Namespace="X", MetricData=[{"MetricName": "m", "Value": 1}])

    def test_json(self):
        name = self.function()
        self.invoke(name)
        ask = {"Namespace": "AWS/Lambda", "MetricName": "Invocations", "Dimensions": [{"Name": "FunctionName", "Value": name}],
               "StartTime": time.time() - 3600, "EndTime": time.time() + 60, "Period": 300, "Statistics": ["Sum"]}
        scope = "20260101/us-east-1/monitoring/aws4_request"
        def send(operation, body):
            return urllib.request.urlopen(urllib.request.Request(self.danki.url, json.dumps(body).encode(), {
                "X-Amz-Target": f"GraniteServiceVersion20100801.{operation}", "Content-Type": "application/x-amz-json-1.0",
                "Authorization": f"AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/{scope}, SignedHeaders=host, Signature=0"}))
        with send("GetMetricStatistics", ask) as answer:
            [point] = json.load(answer)["Datapoints"]
        self.assertEqual((point["Sum"], point["Timestamp"] % 300), (1, 0))
        with self.assertRaises(urllib.error.HTTPError) as caught:
            send("GetMetricStatistics", {**ask, "Period": 7})
        with caught.exception as refused:
            self.assertEqual(refused.code, 400)
            self.assertIn("InvalidParameterValueException", json.load(refused)["__type"])


if __name__ == "__main__":
    unittest.main()
