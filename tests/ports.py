"""Which port may a server be told to bind, some moments from now?

One that the system gives to nobody meanwhile: who asks it for any port gets one from 32768 on.
"""

import random
import socket
from collections.abc import Iterator

OURS = range(15_000, 32_768)


def _free_ports() -> Iterator[int]:
    for port in random.sample(OURS, len(OURS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        yield port


_ports = _free_ports()


def free_port() -> int:
    """A port on loopback that is free, each time another."""
    return next(_ports)
