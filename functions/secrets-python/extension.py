import http.client
import json
import os
from urllib.parse import quote

from common import measure

port = int(os.environ.get("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT", "2773"))
connection = http.client.HTTPConnection("127.0.0.1", port)


def get(name):
    headers = {"X-Aws-Parameters-Secrets-Token": os.environ["AWS_SESSION_TOKEN"]}
    connection.request("GET", f"/secretsmanager/get?secretId={quote(name, safe='')}", headers=headers)
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        raise RuntimeError(f"{response.status}: {body.decode()}")
    return json.loads(body)["SecretString"]


def handler(event, context):
    return measure(get, event)
