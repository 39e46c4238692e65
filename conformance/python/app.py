"""The echo that every client here serves, on AWS's runtime client for Python."""


def handler(event, context):
    if event["op"] == "fail":
        raise ValueError("boom")
    if event["op"] == "context":
        return {"id": context.aws_request_id, "arn": context.invoked_function_arn}
    if event["op"] == "twice":
        return event["value"] * 2 + "x" * 100
    return event["value"]
