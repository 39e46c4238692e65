import boto3

from common import measure

client = boto3.client("secretsmanager")


def handler(event, context):
    return measure(lambda name: client.get_secret_value(SecretId=name)["SecretString"], event)
