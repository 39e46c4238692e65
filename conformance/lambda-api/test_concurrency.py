"""Concurrency and provisioned concurrency (PC) as AWS has them: seventeen behaviours, each a test of its name, driven by boto3."""

import concurrent.futures
import json
import tempfile
import os
import time
import unittest

from danki import Case, lines

INITIALIZATION = {"op": "env", "names": ["AWS_LAMBDA_INITIALIZATION_TYPE"]}


class Concurrency(Case):
    flags = ("--pc-delay", "1", "--account-limit", "130")

    def kind(self, name, qualifier):
        return self.invoke(name, INITIALIZATION, Qualifier=qualifier)["Payload"]["env"]["AWS_LAMBDA_INITIALIZATION_TYPE"]

    def at_once(self, name, count, seconds, **options):
        """So many invocations that overlap: how many were answered, and why others were not."""
        def one(_):
            try:
                self.invoke(name, {"op": "sleep", "s": seconds}, **options)
                return "answered"
            except self.aws.exceptions.TooManyRequestsException as error:
                self.assertEqual(error.response["ResponseMetadata"]["HTTPStatusCode"], 429)
                self.assertIn("retry-after", error.response["ResponseMetadata"]["HTTPHeaders"])
                return error.response["Reason"]
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            return list(pool.map(one, range(count)))

    def test_01_reserved_concurrency_is_put_got_and_deleted(self):
        name = self.function()
        self.assertNotIn("ReservedConcurrentExecutions", self.aws.get_function_concurrency(FunctionName=name))
        self.aws.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=5)
        self.assertEqual(self.aws.get_function_concurrency(FunctionName=name)["ReservedConcurrentExecutions"], 5)
        self.assertEqual(self.aws.get_function(FunctionName=name)["Concurrency"], {"ReservedConcurrentExecutions": 5})
        self.aws.delete_function_concurrency(FunctionName=name)
        self.assertNotIn("Concurrency", self.aws.get_function(FunctionName=name))
        self.refused("ResourceNotFoundException", self.aws.put_function_concurrency, FunctionName="no", ReservedConcurrentExecutions=1)

    def test_02_a_hundred_stay_unreserved(self):
        name = self.function()
        self.refused("InvalidParameterValueException", self.aws.put_function_concurrency, "below its minimum value of [100]",
                     FunctionName=name, ReservedConcurrentExecutions=31)
        self.aws.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=30)

    def test_03_account_settings_count_reservations(self):
        name = self.function()
        self.aws.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=7)
        limits = self.aws.get_account_settings()["AccountLimit"]
        self.assertEqual((limits["ConcurrentExecutions"], limits["UnreservedConcurrentExecutions"]), (130, 123))

    def test_04_reserved_zero_disables(self):
        name = self.function()
        self.aws.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
        said = self.refused("TooManyRequestsException", self.aws.invoke, "Rate Exceeded.", FunctionName=name)
        self.assertEqual(said["Reason"], "ReservedFunctionConcurrentInvocationLimitExceeded")
        self.aws.delete_function_concurrency(FunctionName=name)
        self.assertEqual(self.invoke(name, {"n": 1})["Payload"], {"n": 1})

    def test_05_reserved_concurrency_is_a_ceiling(self):
        name = self.function(MemorySize=256)
        self.aws.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=3)
        ends = self.at_once(name, 12, 4)
        self.assertEqual((ends.count("answered"), ends.count("ReservedFunctionConcurrentInvocationLimitExceeded")), (3, 9))

    def test_06_pc_needs_a_published_version(self):
        name = self.function()
        put = self.aws.put_provisioned_concurrency_config
        self.refused("InvalidParameterValueException", put, "unpublished function versions",
                     FunctionName=name, Qualifier="$LATEST", ProvisionedConcurrentExecutions=1)
        self.refused("ResourceNotFoundException", put, FunctionName=name, Qualifier="9", ProvisionedConcurrentExecutions=1)
        self.refused("ResourceNotFoundException", put, "Cannot find alias", FunctionName=name, Qualifier="no",
                     ProvisionedConcurrentExecutions=1)

    def test_07_pc_is_in_progress_then_ready(self):
        name = self.function()
        version = self.publish(name)
        put = self.aws.put_provisioned_concurrency_config(FunctionName=name, Qualifier=version, ProvisionedConcurrentExecutions=2)
        self.assertEqual(put["ResponseMetadata"]["HTTPStatusCode"], 202)
        self.assertEqual((put["Status"], put["AvailableProvisionedConcurrentExecutions"]), ("IN_PROGRESS", 0))
        ready = self.settled(name, version)
        self.assertEqual((ready["AllocatedProvisionedConcurrentExecutions"], ready["AvailableProvisionedConcurrentExecutions"]), (2, 2))
        [listed] = self.aws.list_provisioned_concurrency_configs(FunctionName=name)["ProvisionedConcurrencyConfigs"]
        self.assertTrue(listed["FunctionArn"].endswith(f"{name}:{version}"))

    def test_08_pc_is_deleted(self):
        name = self.function()
        version = self.publish(name)
        self.provision(name, version, 1)
        self.aws.delete_provisioned_concurrency_config(FunctionName=name, Qualifier=version)
        self.refused("ProvisionedConcurrencyConfigNotFoundException", self.aws.get_provisioned_concurrency_config,
                     "No Provisioned Concurrency Config", FunctionName=name, Qualifier=version)
        self.assertEqual(self.kind(name, version), "on-demand")

    def test_09_pc_is_served_warm_and_says_so(self):
        name = self.function()
        version = self.publish(name)
        self.provision(name, version, 1)
        self.assertEqual(self.kind(name, version), "provisioned-concurrency")
        self.assertEqual(self.kind(name, "$LATEST"), "on-demand")

    def test_10_requests_during_allocation_are_on_demand(self):
        name = self.function()
        version = self.publish(name)
        self.aws.put_provisioned_concurrency_config(FunctionName=name, Qualifier=version, ProvisionedConcurrentExecutions=1)
        self.assertEqual(self.kind(name, version), "on-demand")
        self.settled(name, version)

    def test_11_what_exceeds_pc_spills_over(self):
        name = self.function()
        version = self.publish(name)
        self.provision(name, version, 1)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            busy = pool.submit(self.invoke, name, {"op": "sleep", "s": 3}, Qualifier=version)
            time.sleep(0.5)
            self.assertEqual(self.kind(name, version), "on-demand")
            busy.result()

    def test_12_pc_within_reserved_and_reserved_above_pc(self):
        name = self.function()
        version = self.publish(name)
        self.aws.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=2)
        self.refused("InvalidParameterValueException", self.aws.put_provisioned_concurrency_config,
                     "greater than the reservedConcurrentExecution", FunctionName=name, Qualifier=version,
                     ProvisionedConcurrentExecutions=3)
        self.provision(name, version, 2)
        self.refused("InvalidParameterValueException", self.aws.put_function_concurrency,
                     " ReservedConcurrentExecutions  1 should not be lower than function's total provisioned concurrency [2].",
                     FunctionName=name, ReservedConcurrentExecutions=1)

    def test_13_pc_that_takes_the_whole_reservation_throttles_the_rest(self):
        name = self.function()
        version = self.publish(name)
        self.aws.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=1)
        self.provision(name, version, 1)
        self.assertEqual(self.kind(name, version), "provisioned-concurrency")
        said = self.refused("TooManyRequestsException", self.aws.invoke, FunctionName=name)
        self.assertEqual(said["Reason"], "ReservedFunctionConcurrentInvocationLimitExceeded")

    def test_14_not_both_an_alias_and_its_version(self):
        name = self.function()
        version = self.publish(name)
        self.aws.create_alias(FunctionName=name, Name="live", FunctionVersion=version)
        self.provision(name, version, 1)
        put = self.aws.put_provisioned_concurrency_config
        self.refused("ResourceConflictException", put, "already Provisioned version", FunctionName=name, Qualifier="live",
                     ProvisionedConcurrentExecutions=1)
        self.aws.delete_provisioned_concurrency_config(FunctionName=name, Qualifier=version)
        self.provision(name, "live", 1)
        self.refused("ResourceConflictException", put, "pointed by a Provisioned Concurrency alias", FunctionName=name,
                     Qualifier=version, ProvisionedConcurrentExecutions=1)

    def test_15_pc_moves_with_its_alias(self):
        name = self.function()
        one, two = self.publish(name), self.publish(name)
        self.aws.create_alias(FunctionName=name, Name="live", FunctionVersion=one)
        self.provision(name, "live", 1)
        self.aws.update_alias(FunctionName=name, Name="live", FunctionVersion=two)
        now = self.aws.get_provisioned_concurrency_config(FunctionName=name, Qualifier="live")
        self.assertEqual(now["Status"], "IN_PROGRESS")
        self.settled(name, "live")
        self.assertEqual(self.kind(name, "live"), "provisioned-concurrency")
        self.assertEqual(self.kind(name, one), "on-demand")

    def test_16_a_failing_init_fails_the_allocation(self):
        name = self.function(Environment={"Variables": {"FAIL_INIT": "1"}})
        version = self.publish(name)
        failed = self.provision(name, version, 1, status="FAILED")
        self.assertIn("FUNCTION_ERROR_INIT_FAILURE", failed["StatusReason"])

    def test_17_asynchronous_events_wait_for_reserved_concurrency(self):
        name = self.function()
        self.aws.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=1)
        with tempfile.TemporaryDirectory() as dir:
            records = os.path.join(dir, "records.jsonl")
            self.aws.put_function_event_invoke_config(
                FunctionName=name, DestinationConfig={"OnSuccess": {"Destination": f"file:{records}"}})
            sent = [self.aws.invoke(FunctionName=name, InvocationType="Event", Payload=json.dumps({"op": "sleep", "s": 0.5, "n": n}))
                    ["ResponseMetadata"]["RequestId"] for n in range(3)]
            done = lambda: lines(records)
            self.until(lambda: len(done()) == 3)
            self.assertEqual(sorted(r["requestContext"]["requestId"] for r in done()), sorted(sent))
            self.aws.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
            self.aws.put_function_event_invoke_config(
                FunctionName=name, DestinationConfig={"OnFailure": {"Destination": f"file:{records}"}})
            self.aws.invoke(FunctionName=name, InvocationType="Event", Payload=b"{}")
            self.until(lambda: len(done()) == 4)
            context = done()[-1]["requestContext"]
            self.assertEqual((context["condition"], context["approximateInvokeCount"]), ("ZeroReservedConcurrency", 0))


if __name__ == "__main__":
    unittest.main()
