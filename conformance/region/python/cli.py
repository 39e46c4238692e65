"""AWS's CLI against Secrets Manager and Parameter Store: every operation that is offered, in one process, since to start it thirty times
would be most of the time."""

import contextlib
import io
import json
import shlex
import sys

from awscli.clidriver import create_clidriver


def aws(line, status=0):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        ended = create_clidriver().main(shlex.split(line))
    assert ended == status, (line, ended, out.getvalue(), err.getvalue())
    return out.getvalue() if status == 0 else err.getvalue()


def text(line, query):
    return aws(f"{line} --output text --query {query}").rstrip("\n")


def secrets_manager():
    assert "Secrets Manager can't find the specified secret." in aws("secretsmanager get-secret-value --secret-id cli", 255)
    created = json.loads(aws("secretsmanager create-secret --name cli --secret-string one --tags Key=k,Value=v"))
    assert text("secretsmanager get-secret-value --secret-id cli", "SecretString") == "one"
    aws("secretsmanager put-secret-value --secret-id cli --secret-string two")
    assert text("secretsmanager get-secret-value --secret-id cli --version-stage AWSPREVIOUS", "SecretString") == "one"
    aws("secretsmanager update-secret --secret-id cli --description words --secret-string three")
    assert text("secretsmanager describe-secret --secret-id cli", "Description") == "words"
    first = created["VersionId"]
    aws(f"secretsmanager update-secret-version-stage --secret-id cli --version-stage mine --move-to-version-id {first}")
    assert text("secretsmanager get-secret-value --secret-id cli --version-stage mine", "SecretString") == "one"
    assert text("secretsmanager list-secret-version-ids --secret-id cli --include-deprecated", "'length(Versions)'") == "3"
    aws("secretsmanager tag-resource --secret-id cli --tags Key=l,Value=w")
    aws("secretsmanager untag-resource --secret-id cli --tag-keys k")
    assert text("secretsmanager list-secrets --filters Key=tag-key,Values=l", "SecretList[].Name") == "cli"
    assert text("secretsmanager batch-get-secret-value --secret-id-list cli none", "Errors[].ErrorCode") == "ResourceNotFoundException"
    assert len(text("secretsmanager get-random-password --password-length 40 --exclude-punctuation", "RandomPassword")) == 40
    assert "No Lambda rotation function ARN" in aws("secretsmanager rotate-secret --secret-id cli", 255)
    aws("secretsmanager delete-secret --secret-id cli")
    aws("secretsmanager restore-secret --secret-id cli")
    aws("secretsmanager delete-secret --secret-id cli --force-delete-without-recovery")


def parameter_store():
    assert "(ParameterNotFound)" in aws("ssm get-parameter --name /cli", 255)
    assert text("ssm put-parameter --name /cli/a --value v --type SecureString --tags Key=k,Value=v", "Version") == "1"
    assert text("ssm get-parameter --name /cli/a --with-decryption", "Parameter.Value") == "v"
    aws("ssm put-parameter --name /cli/a --value w --overwrite")
    aws("ssm label-parameter-version --name /cli/a --parameter-version 1 --labels old")
    assert text("ssm get-parameter --name /cli/a:old --with-decryption", "Parameter.Value") == "v"
    aws("ssm unlabel-parameter-version --name /cli/a --parameter-version 1 --labels old")
    assert text("ssm get-parameter-history --name /cli/a", "'length(Parameters)'") == "2"
    assert text("ssm get-parameters --names /cli/a /none", "InvalidParameters") == "/none"
    aws("ssm put-parameter --name /cli/b/c --value x --type String")
    assert text("ssm get-parameters-by-path --path /cli --recursive", "'length(Parameters)'") == "2"
    assert text("ssm describe-parameters --parameter-filters Key=Type,Values=String", "Parameters[].Name") == "/cli/b/c"
    aws("ssm add-tags-to-resource --resource-type Parameter --resource-id /cli/a --tags Key=l,Value=w")
    aws("ssm remove-tags-from-resource --resource-type Parameter --resource-id /cli/a --tag-keys k")
    assert text("ssm list-tags-for-resource --resource-type Parameter --resource-id /cli/a", "TagList[].Key") == "l"
    aws("ssm delete-parameter --name /cli/a")
    assert text("ssm delete-parameters --names /cli/b/c /none", "DeletedParameters") == "/cli/b/c"


secrets_manager()
parameter_store()
sys.stdout.write("all fine\n")
