import botocore.session
from aws_secretsmanager_caching import SecretCache

from common import measure

cache = SecretCache(client=botocore.session.get_session().create_client("secretsmanager"))


def handler(event, context):
    return measure(cache.get_secret_string, event)
