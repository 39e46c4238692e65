"""Straight to Secrets Manager with boto3; as in S4 the import and the client's creation belong to the first call."""

from aws_xray_sdk.core import patch_all

patch_all()

from timing import measure  # noqa: E402

client = None


def get():
    global client
    import boto3

    client = client or boto3.client("secretsmanager")
    return client.get_secret_value(SecretId="lambda/extension/test")["SecretString"]


def handler(event, context):
    global client
    client = None
    return measure(get, event["direct_calls"])
