"""AWS's host names lead to the region under test: what DNS does in an env, done here in the client's process. The SDK itself is untouched."""

import os
import socket

real = socket.getaddrinfo


def getaddrinfo(host, port, *args, **kwargs):
    if isinstance(host, str) and host.endswith(".amazonaws.com"):
        address, port = os.environ["REGION_ADDRESS"].rsplit(":", 1)
        return real(address, int(port), *args, **kwargs)
    return real(host, port, *args, **kwargs)


socket.getaddrinfo = getaddrinfo
