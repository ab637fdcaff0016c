"""Load on a server: some clients, each with one kept connection, each asking as soon as it may.

Plain sockets, since a whole HTTP client would take more of the machine than the server measured.
"""

import random
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit


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
    load, place = Load(), (address.hostname, address.port)
    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as threads:
        ended = [
            threads.submit(_client, load, place, context, paths, started + seconds)
            for _ in range(clients)
        ]
    for client in ended:
        client.result()
    load.duration = time.perf_counter() - started
    return load


def _client(
    load: Load,
    place: tuple[str, int],
    context: ssl.SSLContext,
    paths: Sequence[str],
    until: float,
) -> None:
    chosen = random.Random(threading.get_ident())
    with (
        socket.create_connection(place, timeout=30) as plain,
        context.wrap_socket(plain, server_hostname=place[0]) as connection,
    ):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while (began := time.perf_counter()) < until:
            path = chosen.choice(paths)
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {place[0]}\r\n\r\n".encode())
            good = _answer(connection).startswith(b"HTTP/1.1 200")
            load.seconds.append(time.perf_counter() - began)
            load.failed += not good


def _answer(connection: ssl.SSLSocket) -> bytes:
    """Read one answer that has a Content-Length; return its head."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    missing = length - len(body)
    while missing > 0:
        missing -= len(_more(connection))
    return head


def _more(connection: ssl.SSLSocket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the server closed the connection")
    return data
