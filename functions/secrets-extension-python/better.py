"""Through danki-secrets by what it has beyond AWS's contract: a Unix socket, and a connection that is kept. X-Ray is patched in, too."""

import http.client
import json
import os
import socket

from aws_xray_sdk.core import patch_all

patch_all()

from timing import measure  # noqa: E402

HEADERS = {"X-Aws-Parameters-Secrets-Token": os.environ["AWS_SESSION_TOKEN"]}


class Extension(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ["DANKI_SECRETS_UNIX_SOCKET"])


connection = Extension("localhost")


def get():
    connection.request("GET", "/secretsmanager/get?secretId=lambda/extension/test", headers=HEADERS)
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        raise RuntimeError(f"{response.status}: {body.decode()}")
    return json.loads(body)["SecretString"]


def handler(event, context):
    return measure(get, event["hits"])
