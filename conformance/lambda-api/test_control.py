"""Functions, versions, aliases, layers, tags, policies and settings: create, look, change, delete, and what is refused."""

import hashlib
import io
import json
import os
import platform
import re
import subprocess
import tarfile
import tempfile
import unittest
import urllib.request

from danki import ACCOUNT, CODE, ROLE, Case, package

ARN = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:"
NEVER = {"ZipFile": package({"app.py": "def handler(event, context):\n    return 'second'\n"})}


RUNTIME = """#!/bin/bash
request() {
  exec 3<>"/dev/tcp/${AWS_LAMBDA_RUNTIME_API%:*}/${AWS_LAMBDA_RUNTIME_API##*:}"
  printf '%s /2018-06-01/runtime/invocation/%s HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n%s' "$1" "$2" "${#3}" "$3" >&3
  while IFS= read -r line <&3 && line=${line%$'\\r'} && [[ -n $line ]]; do
    case ${line,,} in lambda-runtime-aws-request-id:*) id=${line#*: } ;; esac
  done
  exec 3>&-
}
while true; do request GET next ''; request POST "$id/response" "\\"WORD $*\\""; done
"""


def image(path, word):
    """What `docker save` would write of this machine's bash and a runtime in it."""
    needed = subprocess.run(["ldd", "/bin/bash"], capture_output=True, text=True, check=True).stdout.split()
    files = {name: open(name, "rb").read() for name in ["/bin/bash", *(w for w in needed if w.startswith("/"))]}
    files["/run.sh"] = RUNTIME.replace("WORD", word).encode()
    layer = tar(files)
    # An image is known by its configuration, which names its layers by content.
    config = {"architecture": {"aarch64": "arm64"}.get(platform.machine(), "amd64"), "os": "linux",
              "config": {"Entrypoint": ["/run.sh"]},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}
    parts = {"c.json": json.dumps(config).encode(), "l.tar": layer,
             "manifest.json": json.dumps([{"Config": "c.json", "Layers": ["l.tar"]}]).encode()}
    with open(path + ".new", "wb") as file:
        file.write(tar(parts))
    os.rename(path + ".new", path)


def tar(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


class Functions(Case):
    def test_create_becomes_active(self):
        made = self.aws.create_function(
            FunctionName="made", Runtime="python3.11", Handler="app.handler", Role=ROLE, Code={"ZipFile": CODE},
            Environment={"Variables": {"AA": "1"}},
            Tags={"team": "x"}, Description="d")
        self.addCleanup(self.forget, "made")
        self.assertEqual(made["ResponseMetadata"]["HTTPStatusCode"], 201)
        self.assertEqual((made["State"], made["StateReasonCode"]), ("Pending", "Creating"))
        self.assertEqual((made["FunctionArn"], made["Version"], made["MemorySize"]), (ARN + "made", "$LATEST", 128))
        self.aws.get_waiter("function_active").wait(FunctionName="made", WaiterConfig={"Delay": 0.05})
        got = self.aws.get_function(FunctionName="made")
        self.assertEqual(got["Configuration"]["LastUpdateStatus"], "Successful")
        self.assertEqual(got["Tags"], {"team": "x"})
        with urllib.request.urlopen(got["Code"]["Location"]) as zipped:
            self.assertEqual(zipped.read(), CODE)

    def test_names_in_every_form(self):
        name = self.function()
        for form in (name, ARN + name, f"{ACCOUNT}:function:{name}", f"{name}:$LATEST"):
            self.assertEqual(self.aws.get_function_configuration(FunctionName=form)["FunctionName"], name)

    def test_a_name_is_taken_once(self):
        name = self.function()
        self.refused("ResourceConflictException", self.aws.create_function, f"Function already exist: {name}",
                     FunctionName=name, Runtime="python3.11", Handler="a.b", Role=ROLE, Code={"ZipFile": CODE})

    def test_what_is_not_there(self):
        said = self.refused("ResourceNotFoundException", self.aws.get_function,
                            f"Function not found: {ARN}nobody", FunctionName="nobody")
        self.assertEqual(said["ResponseMetadata"]["HTTPStatusCode"], 404)
        self.refused("ResourceNotFoundException", self.aws.invoke, f"{ARN}nobody:$LATEST", FunctionName="nobody")
        name = self.function()
        self.refused("ResourceNotFoundException", self.aws.get_function, ":7", FunctionName=name, Qualifier="7")

    def test_settings_out_of_range(self):
        create = lambda **settings: self.aws.create_function(**{
            "FunctionName": "refused", "Runtime": "python3.11", "Handler": "a.b", "Role": ROLE,
            "Code": {"ZipFile": CODE}, **settings})
        for error, word, settings in (
            ("ValidationException", "'memorySize'", {"MemorySize": 10241}),
            ("ValidationException", "'timeout'", {"Timeout": 901}),
            ("ValidationException", "'role'", {"Role": "role-of-nobody"}),
            ("InvalidParameterValueException", "AWS_REGION", {"Environment": {"Variables": {"AWS_REGION": "x"}}}),
            ("InvalidParameterValueException", "4KB", {"Environment": {"Variables": {"BIG": "x" * 4096}}}),
            ("InvalidParameterValueException", "does not exist", {"Layers": [f"arn:aws:lambda:us-east-1:{ACCOUNT}:layer:no:1"]}),
            ("InvalidParameterValueException", "java21", {"Runtime": "java21"}),
            ("InvalidParameterValueException", "unzip", {"Code": {"ZipFile": b"no zip"}}),
            ("InvalidParameterValueException", "NoSuchBucket", {"Code": {"S3Bucket": "nowhere", "S3Key": "k"}}),
            ("InvalidParameterValueException", "Image", {"PackageType": "Image", "Code": {"ImageUri": "x"}}),
            ("InvalidParameterValueException", "PackageType is Zip", {"Code": {"ImageUri": "/x"}}),
            ("InvalidParameterValueException", "SnapStart", {"SnapStart": {"ApplyOn": "PublishedVersions"}}),
        ):
            with self.subTest(word):
                self.refused(error, create, word, **settings)
        self.refused("ResourceNotFoundException", self.aws.get_function, FunctionName="refused")

    def test_update_code(self):
        name = self.function()
        self.assertEqual(self.invoke(name, {"n": 1})["Payload"], {"n": 1})
        changed = self.aws.update_function_code(FunctionName=name, **NEVER)
        self.assertEqual(changed["LastUpdateStatus"], "InProgress")
        self.updated(name)
        self.assertEqual(self.invoke(name)["Payload"], "second")
        dry = self.aws.update_function_code(FunctionName=name, ZipFile=CODE, DryRun=True)
        self.assertNotEqual(dry["CodeSha256"], changed["CodeSha256"])
        self.assertEqual(self.invoke(name)["Payload"], "second")

    def test_update_configuration(self):
        name = self.function()
        before = self.aws.get_function_configuration(FunctionName=name)
        self.aws.update_function_configuration(
            FunctionName=name, MemorySize=256, Environment={"Variables": {"COLOUR": "red"}}, RevisionId=before["RevisionId"])
        self.updated(name)
        got = self.invoke(name, {"op": "env", "names": ["COLOUR", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]})["Payload"]
        self.assertEqual(got["env"], {"COLOUR": "red", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256"})
        self.refused("PreconditionFailedException", self.aws.update_function_configuration, "Revision Id",
                     FunctionName=name, Timeout=5, RevisionId=before["RevisionId"])

    def test_lists_have_pages(self):
        names = [self.function(f"page{n}", ready=False) for n in range(3)]
        pages = list(self.aws.get_paginator("list_functions").paginate(PaginationConfig={"PageSize": 2}))
        self.assertGreaterEqual(len(pages), 2)
        found = [f["FunctionName"] for page in pages for f in page["Functions"]]
        self.assertLessEqual(set(names), set(found))
        self.assertEqual(len(found), len(set(found)))

    def test_delete(self):
        name = self.function()
        self.refused("InvalidParameterValueException", self.aws.delete_function, "$LATEST",
                     FunctionName=name, Qualifier="$LATEST")
        self.aws.delete_function(FunctionName=name)
        self.refused("ResourceNotFoundException", self.aws.delete_function, FunctionName=name)

    def test_code_in_a_directory_is_reloaded(self):
        with tempfile.TemporaryDirectory() as code:
            os.chmod(code, 0o755)
            path = os.path.join(code, "app.py")
            with open(path, "w") as file:
                file.write("def handler(event, context):\n    return 1\n")
            name = self.function(Code={"S3Bucket": "danki-local", "S3Key": code})
            self.assertEqual(self.invoke(name)["Payload"], 1)
            with open(path, "w") as file:
                file.write("def handler(event, context):\n    return 2\n")
            self.until(lambda: self.invoke(name)["Payload"] == 2)

    def test_a_container_image(self):
        create = lambda uri, **more: self.aws.create_function(
            FunctionName="image", PackageType="Image", Role=ROLE, Code={"ImageUri": uri}, **more)
        for uri in ("1234.dkr.ecr.us-east-1.amazonaws.com/x:latest", "relative.tar", "/nonexistent.tar"):
            self.refused("InvalidParameterValueException", create, "docker save", uri=uri)
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "image.tar")
            image(path, "one")
            self.addCleanup(self.forget, "image")
            made = create(path, ImageConfig={"Command": ["app.handler"]})
            self.assertEqual((made["PackageType"], made["ImageConfigResponse"]["ImageConfig"]["Command"]), ("Image", ["app.handler"]))
            self.assertNotIn("Runtime", made)
            self.aws.get_waiter("function_active").wait(FunctionName="image", WaiterConfig={"Delay": 0.05})
            self.assertEqual(self.aws.get_function(FunctionName="image")["Code"]["ImageUri"], path)
            self.assertEqual(self.invoke("image")["Payload"], "one app.handler")
            # The same file again is another image, deployed by itself.
            image(path, "two")
            self.until(lambda: self.invoke("image")["Payload"] == "two app.handler")
            self.refused("InvalidParameterValueException", self.aws.update_function_code, "ImageUri",
                         FunctionName="image", ZipFile=CODE)

    def test_a_wrong_handler_is_said_at_once(self):
        name = self.function(ready=False, Handler="other.handler")
        failed = lambda: self.aws.get_function_configuration(FunctionName=name)["State"] == "Failed"
        self.until(failed)
        self.assertIn("other", self.aws.get_function_configuration(FunctionName=name)["StateReason"])
        self.refused("ResourceConflictException", self.aws.invoke, "Failed", FunctionName=name)

    def test_logging_config(self):
        name = self.function(LoggingConfig={"LogFormat": "JSON", "SystemLogLevel": "WARN"})
        config = self.aws.get_function_configuration(FunctionName=name)["LoggingConfig"]
        self.assertEqual(config, {"LogFormat": "JSON", "ApplicationLogLevel": "INFO", "SystemLogLevel": "WARN",
                                  "LogGroup": f"/aws/lambda/{name}"})


class Versions(Case):
    def test_publish(self):
        name = self.function()
        first = self.aws.publish_version(FunctionName=name, Description="one")
        self.assertEqual((first["Version"], first["FunctionArn"]), ("1", f"{ARN}{name}:1"))
        again = self.aws.publish_version(FunctionName=name, Description="one")
        self.assertEqual(again["Version"], "1")
        self.aws.update_function_code(FunctionName=name, **NEVER)
        self.updated(name)
        self.assertEqual(self.aws.publish_version(FunctionName=name)["Version"], "2")
        self.active(name, "1"), self.active(name, "2")
        self.assertEqual(self.invoke(name, {"n": 1}, Qualifier="1")["Payload"], {"n": 1})
        answer = self.invoke(f"{name}:2")
        self.assertEqual((answer["Payload"], answer["ExecutedVersion"]), ("second", "2"))
        versions = self.aws.list_versions_by_function(FunctionName=name)["Versions"]
        self.assertEqual([v["Version"] for v in versions], ["$LATEST", "1", "2"])
        self.refused("InvalidParameterValueException", self.aws.publish_version, "CodeSHA256", FunctionName=name, CodeSha256="x")

    def test_a_version_used_by_an_alias_stays(self):
        name = self.function()
        version = self.publish(name)
        self.aws.create_alias(FunctionName=name, Name="live", FunctionVersion=version)
        self.refused("ResourceConflictException", self.aws.delete_function, "live", FunctionName=name, Qualifier=version)
        self.aws.delete_alias(FunctionName=name, Name="live")
        self.aws.delete_function(FunctionName=name, Qualifier=version)
        self.refused("ResourceNotFoundException", self.aws.get_function, FunctionName=name, Qualifier=version)

    def test_aliases(self):
        name = self.function()
        one, two = self.publish(name), self.publish(name)
        made = self.aws.create_alias(FunctionName=name, Name="live", FunctionVersion=one, Description="d")
        self.assertEqual(made["AliasArn"], f"{ARN}{name}:live")
        self.refused("ResourceConflictException", self.aws.create_alias, "Alias already exists",
                     FunctionName=name, Name="live", FunctionVersion=one)
        self.refused("ResourceNotFoundException", self.aws.create_alias, FunctionName=name, Name="b", FunctionVersion="9")
        self.refused("ResourceNotFoundException", self.aws.get_alias, "Cannot find alias", FunctionName=name, Name="no")
        self.assertEqual(self.invoke(name, Qualifier="live")["ExecutedVersion"], one)
        self.aws.update_alias(FunctionName=name, Name="live", FunctionVersion=two)
        self.assertEqual(self.invoke(name, Qualifier="live")["ExecutedVersion"], two)
        self.assertEqual([a["Name"] for a in self.aws.list_aliases(FunctionName=name)["Aliases"]], ["live"])
        seen = self.invoke(name, {"op": "context"}, Qualifier="live")["Payload"]
        self.assertEqual((seen["arn"], seen["version"]), (f"{ARN}{name}:live", two))

    def test_weights_divide_invocations(self):
        name = self.function()
        one, two = self.publish(name), self.publish(name)
        self.aws.create_alias(FunctionName=name, Name="both", FunctionVersion=one,
                              RoutingConfig={"AdditionalVersionWeights": {two: 0.5}})
        served = [self.invoke(name, Qualifier="both")["ExecutedVersion"] for _ in range(60)]
        self.assertEqual(set(served), {one, two})
        # 60 fair draws: fewer than 10 of either happens once in ten million runs.
        self.assertGreater(min(served.count(one), served.count(two)), 9)
        self.refused("InvalidParameterValueException", self.aws.update_alias, "already included", FunctionName=name, Name="both",
                     RoutingConfig={"AdditionalVersionWeights": {one: 0.5}})


class Layers(Case):
    def test_layers_are_merged_into_opt(self):
        arns = []
        for text in ("one", "two"):
            zipped = package({"python/shared.py": f"TEXT = {text!r}\n", f"{text}.txt": text})
            made = self.aws.publish_layer_version(LayerName=text, Content={"ZipFile": zipped}, CompatibleRuntimes=["python3.11"])
            self.assertEqual(made["Version"], 1)
            arns.append(made["LayerVersionArn"])
        code = package({"app.py": "import os, shared\ndef handler(e, c):\n    return [shared.TEXT, sorted(f for f in os.listdir('/opt') if f.endswith('.txt'))]\n"})
        name = self.function(Layers=arns, Code={"ZipFile": code})
        self.assertEqual(self.invoke(name)["Payload"], ["two", ["one.txt", "two.txt"]])
        self.assertEqual([layer["Arn"] for layer in self.aws.get_function_configuration(FunctionName=name)["Layers"]], arns)
        self.assertEqual(self.aws.get_layer_version_by_arn(Arn=arns[0])["LayerVersionArn"], arns[0])
        self.assertEqual({l["LayerName"] for l in self.aws.list_layers()["Layers"]}, {"one", "two"})
        second = self.aws.publish_layer_version(LayerName="one", Content={"ZipFile": zipped})
        self.assertEqual([v["Version"] for v in self.aws.list_layer_versions(LayerName="one")["LayerVersions"]], [2, 1])
        self.aws.delete_layer_version(LayerName="one", VersionNumber=second["Version"])
        self.refused("ResourceNotFoundException", self.aws.get_layer_version, LayerName="one", VersionNumber=2)


class Settings(Case):
    def test_tags(self):
        name = self.function()
        self.aws.tag_resource(Resource=ARN + name, Tags={"a": "1", "b": "2"})
        self.aws.untag_resource(Resource=ARN + name, TagKeys=["a"])
        self.assertEqual(self.aws.list_tags(Resource=ARN + name)["Tags"], {"b": "2"})

    def test_permissions(self):
        name = self.function()
        self.aws.add_permission(FunctionName=name, StatementId="s", Action="lambda:InvokeFunction",
                                Principal="s3.amazonaws.com", SourceArn="arn:aws:s3:::b")
        self.refused("ResourceConflictException", self.aws.add_permission, "(s)", FunctionName=name, StatementId="s",
                     Action="lambda:InvokeFunction", Principal="*")
        self.assertIn("AWS:SourceArn", self.aws.get_policy(FunctionName=name)["Policy"])
        self.aws.remove_permission(FunctionName=name, StatementId="s")
        self.refused("ResourceNotFoundException", self.aws.get_policy, FunctionName=name)
        self.refused("ResourceNotFoundException", self.aws.remove_permission, FunctionName=name, StatementId="s")

    def test_function_urls(self):
        name = self.function()
        made = self.aws.create_function_url_config(FunctionName=name, AuthType="NONE")
        self.assertEqual((made["AuthType"], made["InvokeMode"]), ("NONE", "BUFFERED"))
        self.refused("ResourceConflictException", self.aws.create_function_url_config, FunctionName=name, AuthType="NONE")
        self.aws.update_function_url_config(FunctionName=name, InvokeMode="RESPONSE_STREAM")
        got = self.aws.get_function_url_config(FunctionName=name)
        self.assertEqual((got["FunctionUrl"], got["InvokeMode"]), (made["FunctionUrl"], "RESPONSE_STREAM"))
        self.assertEqual(len(self.aws.list_function_url_configs(FunctionName=name)["FunctionUrlConfigs"]), 1)
        self.aws.delete_function_url_config(FunctionName=name)
        self.refused("ResourceNotFoundException", self.aws.get_function_url_config, FunctionName=name)

    def test_event_invoke_config(self):
        name = self.function()
        self.refused("ResourceNotFoundException", self.aws.get_function_event_invoke_config, FunctionName=name)
        self.aws.put_function_event_invoke_config(FunctionName=name, MaximumRetryAttempts=1, MaximumEventAgeInSeconds=60)
        self.aws.update_function_event_invoke_config(FunctionName=name, MaximumRetryAttempts=0)
        got = self.aws.get_function_event_invoke_config(FunctionName=name)
        self.assertEqual((got["MaximumRetryAttempts"], got["MaximumEventAgeInSeconds"]), (0, 60))
        self.assertEqual(len(self.aws.list_function_event_invoke_configs(FunctionName=name)["FunctionEventInvokeConfigs"]), 1)
        self.aws.delete_function_event_invoke_config(FunctionName=name)
        self.refused("ResourceNotFoundException", self.aws.delete_function_event_invoke_config, FunctionName=name)

    def test_recursion_and_runtime_management(self):
        name = self.function()
        self.assertEqual(self.aws.get_function_recursion_config(FunctionName=name)["RecursiveLoop"], "Terminate")
        self.aws.put_function_recursion_config(FunctionName=name, RecursiveLoop="Allow")
        self.assertEqual(self.aws.get_function_recursion_config(FunctionName=name)["RecursiveLoop"], "Allow")
        self.assertEqual(self.aws.get_runtime_management_config(FunctionName=name)["UpdateRuntimeOn"], "Auto")
        self.aws.put_runtime_management_config(FunctionName=name, UpdateRuntimeOn="FunctionUpdate")
        self.assertEqual(self.aws.get_runtime_management_config(FunctionName=name)["UpdateRuntimeOn"], "FunctionUpdate")

    def test_what_is_not_offered_says_so(self):
        said = self.refused("OperationNotOfferedByDanki", self.aws.list_event_source_mappings, "ListEventSourceMappings")
        self.assertEqual(said["ResponseMetadata"]["HTTPStatusCode"], 501)
        self.refused("OperationNotOfferedByDanki", self.aws.list_code_signing_configs, "ListCodeSigningConfigs")

    def test_every_operation_of_the_model_is_known(self):
        model = self.aws.meta.service_model
        table = routes()
        for name in model.operation_names:
            http = model.operation_model(name).http
            path = http["requestUri"].split("?")[0].rstrip("/")
            self.assertIn((http["method"], path), table, name)


def routes():
    """Method and path template of each row of crates/lambda-api/src/routes.rs; parameters that stand for several fit any."""
    with open("crates/lambda-api/src/routes.rs") as source:
        rows = re.findall(r'\("([A-Z]+)", "(/[^"]*)", "', source.read())

    class Table(list):
        def __contains__(self, asked):
            fits = lambda t, p: len(t) == len(p) and all(a == b or a.startswith("{") for a, b in zip(t, p))
            return any(m == asked[0] and fits(t.split("/"), asked[1].split("/")) for m, t in self)

    return Table(rows)


if __name__ == "__main__":
    unittest.main()
