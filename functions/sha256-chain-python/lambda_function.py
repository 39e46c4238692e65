import hashlib


def handler(event, context):
    iterations = event.get("iterations", 500_000)
    data = b"danki"
    for _ in range(iterations):
        data = hashlib.sha256(data).digest()
    return {"iterations": iterations, "digest": data.hex()}
