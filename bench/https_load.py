"""Load on a server: some clients, each with one kept connection, each asking as soon as it may.

One thread and plain sockets, since whole HTTP clients would take more of the machine than the
server that is measured.
"""

import random
import selectors
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

_CHUNK = 65536


@dataclass
class Load:
    """What came of it: seconds of every request, and how many had another code than 200."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0
    duration: float = 0.0


def run(
    url: str, paths: Sequence[str], certificate: Path, authority: Path, clients: int, seconds: float
) -> Load:
    """Ask for random paths; `certificate`: stem of the client's two files."""
    context = ssl.create_default_context(cafile=str(authority))
    context.load_cert_chain(f"{certificate}.crt", f"{certificate}.key")
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    requests = [
        f"GET {path} HTTP/1.1\r\nHost: {address.hostname}\r\n\r\n".encode() for path in paths
    ]
    load, chosen = Load(), random.Random(0)
    with ExitStack() as stack, selectors.DefaultSelector() as ready:
        for _ in range(clients):
            plain = socket.create_connection((address.hostname, address.port), timeout=30)
            connection = context.wrap_socket(plain, server_hostname=address.hostname)
            client = _Client(stack.enter_context(connection))
            ready.register(connection, selectors.EVENT_READ, client)
            client.ask(chosen.choice(requests))
        started = time.perf_counter()
        while time.perf_counter() < started + seconds:
            for key, _ in ready.select(timeout=1.0):
                client = key.data
                if (code := client.answer()) is not None:
                    load.seconds.append(time.perf_counter() - client.asked_at)
                    load.failed += code != 200
                    client.ask(chosen.choice(requests))
        load.duration = time.perf_counter() - started
    return load


class _Client:
    """One connection with one request under way, which was sent at `asked_at`."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        self._connection = connection
        self._data = b""
        self.asked_at = 0.0

    def ask(self, request: bytes) -> None:
        self._data = b""
        self.asked_at = time.perf_counter()
        self._connection.sendall(request)

    def answer(self) -> int | None:
        """Read what there is; return the code once the answer is complete."""
        try:
            while True:
                data = self._connection.recv(_CHUNK)
                if not data:
                    raise ConnectionError("the server closed the connection")
                self._data += data
        except ssl.SSLWantReadError:
            pass
        head, found, body = self._data.partition(b"\r\n\r\n")
        if not found or len(body) < _length(head):
            return None
        return int(head[9:12])


def _length(head: bytes) -> int:
    _, _, rest = head.lower().partition(b"content-length:")
    return int(rest.partition(b"\r\n")[0])
