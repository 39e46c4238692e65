"""boto3 against Secrets Manager and Parameter Store: every operation that is offered, and the errors' types and texts."""

import sys

import boto3
from botocore.exceptions import ClientError

secrets = boto3.client("secretsmanager")
ssm = boto3.client("ssm")


def refused(code, text, call, **request):
    try:
        call(**request)
    except ClientError as error:
        said = error.response["Error"]
        assert (said["Code"], said.get("Message", "")) == (code, text), said
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 400
        return
    raise AssertionError(f"{request} was not refused")


def secrets_manager():
    none = "Secrets Manager can't find the specified secret."
    refused("ResourceNotFoundException", none, secrets.get_secret_value, SecretId="none")
    try:
        secrets.get_secret_value(SecretId="none")
    except secrets.exceptions.ResourceNotFoundException as error:
        assert error.response["Message"] == none
    created = secrets.create_secret(Name="a/b", SecretString="one", Description="words of it", Tags=[{"Key": "k", "Value": "v"}])
    assert created["ARN"].startswith("arn:aws:secretsmanager:us-east-1:123456789012:secret:a/b-")
    refused("ResourceExistsException", "The operation failed because the secret a/b already exists.", secrets.create_secret, Name="a/b", SecretString="x")
    first = secrets.get_secret_value(SecretId="a/b")
    assert first["SecretString"] == "one" and first["VersionId"] == created["VersionId"] and first["CreatedDate"].year > 2000
    put = secrets.put_secret_value(SecretId=created["ARN"], SecretBinary=b"\x00\x01two")
    assert put["VersionStages"] == ["AWSCURRENT"]
    assert secrets.get_secret_value(SecretId="a/b")["SecretBinary"] == b"\x00\x01two"
    assert secrets.get_secret_value(SecretId="a/b", VersionStage="AWSPREVIOUS")["SecretString"] == "one"
    gone = "Secrets Manager can't find the specified secret value for staging label: AWSPENDING"
    refused("ResourceNotFoundException", gone, secrets.get_secret_value, SecretId="a/b", VersionStage="AWSPENDING")
    secrets.update_secret(SecretId="a/b", SecretString="three", Description="else")
    described = secrets.describe_secret(SecretId="a/b")
    assert described["Description"] == "else" and described["Tags"] == [{"Key": "k", "Value": "v"}]
    assert sorted(sum(described["VersionIdsToStages"].values(), [])) == ["AWSCURRENT", "AWSPREVIOUS"]
    secrets.update_secret_version_stage(SecretId="a/b", VersionStage="mine", MoveToVersionId=created["VersionId"])
    assert secrets.get_secret_value(SecretId="a/b", VersionStage="mine")["SecretString"] == "one"
    assert len(secrets.list_secret_version_ids(SecretId="a/b", IncludeDeprecated=True)["Versions"]) == 3
    secrets.tag_resource(SecretId="a/b", Tags=[{"Key": "l", "Value": "w"}])
    secrets.untag_resource(SecretId="a/b", TagKeys=["k"])
    pages = list(secrets.get_paginator("list_secrets").paginate(Filters=[{"Key": "tag-key", "Values": ["l"]}], PaginationConfig={"PageSize": 1}))
    assert [s["Name"] for page in pages for s in page["SecretList"]] == ["a/b"]
    batch = secrets.batch_get_secret_value(SecretIdList=["a/b", "none"])
    assert batch["SecretValues"][0]["SecretString"] == "three" and batch["Errors"][0]["ErrorCode"] == "ResourceNotFoundException"
    assert len(secrets.get_random_password(PasswordLength=40)["RandomPassword"]) == 40
    refused("InvalidRequestException", "No Lambda rotation function ARN is associated with this secret.", secrets.rotate_secret, SecretId="a/b")
    assert secrets.delete_secret(SecretId="a/b")["DeletionDate"] > first["CreatedDate"]
    marked = "You can't perform this operation on the secret because it was marked for deletion."
    refused("InvalidRequestException", marked, secrets.get_secret_value, SecretId="a/b")
    secrets.restore_secret(SecretId="a/b")
    secrets.delete_secret(SecretId="a/b", ForceDeleteWithoutRecovery=True)
    refused("ResourceNotFoundException", none, secrets.describe_secret, SecretId="a/b")


def parameter_store():
    refused("ParameterNotFound", "", ssm.get_parameter, Name="/none")
    assert ssm.put_parameter(Name="/p/q", Value="one", Type="SecureString", Tags=[{"Key": "k", "Value": "v"}])["Version"] == 1
    exists = "The parameter already exists. To overwrite this value, set the overwrite option in the request to true."
    refused("ParameterAlreadyExists", exists, ssm.put_parameter, Name="/p/q", Value="x", Type="String")
    assert ssm.put_parameter(Name="/p/q", Value="two", Type="SecureString", Overwrite=True)["Version"] == 2
    assert ssm.get_parameter(Name="/p/q")["Parameter"]["Value"] != "two"
    shown = ssm.get_parameter(Name="/p/q", WithDecryption=True)["Parameter"]
    assert shown["Value"] == "two" and shown["LastModifiedDate"].year > 2000
    assert ssm.get_parameter(Name=shown["ARN"], WithDecryption=True)["Parameter"]["Value"] == "two"
    ssm.label_parameter_version(Name="/p/q", ParameterVersion=1, Labels=["old"])
    assert ssm.get_parameter(Name="/p/q:old", WithDecryption=True)["Parameter"]["Value"] == "one"
    ssm.unlabel_parameter_version(Name="/p/q", ParameterVersion=1, Labels=["old"])
    missing = "Systems Manager could not find version 9 of /p/q. Verify the version and try again."
    refused("ParameterVersionNotFound", missing, ssm.get_parameter, Name="/p/q:9")
    assert [h["Version"] for h in ssm.get_parameter_history(Name="/p/q")["Parameters"]] == [1, 2]
    several = ssm.get_parameters(Names=["/p/q", "/none"])
    assert several["InvalidParameters"] == ["/none"]
    ssm.put_parameter(Name="/p/r/s", Value="deep", Type="String")
    assert len(ssm.get_parameters_by_path(Path="/p", Recursive=True)["Parameters"]) == 2
    assert len(ssm.describe_parameters(ParameterFilters=[{"Key": "Type", "Values": ["SecureString"]}])["Parameters"]) == 1
    ssm.add_tags_to_resource(ResourceType="Parameter", ResourceId="/p/q", Tags=[{"Key": "l", "Value": "w"}])
    ssm.remove_tags_from_resource(ResourceType="Parameter", ResourceId="/p/q", TagKeys=["k"])
    assert ssm.list_tags_for_resource(ResourceType="Parameter", ResourceId="/p/q")["TagList"] == [{"Key": "l", "Value": "w"}]
    secrets.create_secret(Name="by-reference", SecretString="s")
    by_reference = ssm.get_parameter(Name="/aws/reference/secretsmanager/by-reference", WithDecryption=True)["Parameter"]
    assert by_reference["Value"] == "s" and by_reference["Version"] == 0
    ssm.delete_parameter(Name="/p/q")
    assert ssm.delete_parameters(Names=["/p/r/s", "/none"])["InvalidParameters"] == ["/none"]


secrets_manager()
parameter_store()
sys.stdout.write("all fine\n")
