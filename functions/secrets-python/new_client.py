import boto3

from common import measure


def handler(event, context):
    return measure(lambda name: boto3.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"], event)
