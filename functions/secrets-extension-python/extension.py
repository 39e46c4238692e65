"""Through an extension on localhost:2773, as S4 did: one `requests.get` per secret, X-Ray patched in."""

import os
import time

from aws_xray_sdk.core import patch_all

patch_all()

import requests  # noqa: E402

from timing import measure  # noqa: E402

URL = "http://localhost:2773/secretsmanager/get?secretId=lambda/extension/test"
HEADERS = {"X-Aws-Parameters-Secrets-Token": os.environ["AWS_SESSION_TOKEN"]}


def get():
    response = requests.get(URL, headers=HEADERS)
    response.raise_for_status()
    return response.json()["SecretString"]


def wait_until_ready():
    # Before the extension has seen the first invocation it answers 400. S4 waits, too; the wait is no part of the miss. A request for
    # nothing is answered without a call to the service.
    for _ in range(200):
        answer = requests.get("http://localhost:2773/secretsmanager/get", headers=HEADERS)
        if "not ready" not in answer.text:
            return
        time.sleep(0.01)
    raise RuntimeError("the extension never became ready")


def handler(event, context):
    wait_until_ready()
    return measure(get, event["hits"])
