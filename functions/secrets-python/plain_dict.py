import time

import boto3

from common import measure

client = boto3.client("secretsmanager")
TTL_S = 300
values = {}


def get(name):
    value, fetched = values.get(name, (None, None))
    if fetched is None or time.monotonic() - fetched >= TTL_S:
        value = client.get_secret_value(SecretId=name)["SecretString"]
        values[name] = value, time.monotonic()
    return value


def handler(event, context):
    return measure(get, event)
