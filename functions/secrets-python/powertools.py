from aws_lambda_powertools.utilities import parameters

from common import measure


def handler(event, context):
    return measure(lambda name: parameters.get_secret(name, max_age=300), event)
