"""Loopback ports that nothing else uses.

They come from below the range from which Linux takes the ports of outgoing connections (32768 and
up), so that a port stays free while its component restarts.
"""

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from streamgraft_local.errors import LocalError

LOWEST, HIGHEST = 20000, 32000


@cache
def _register() -> int | None:
    """Return the file in which this user's processes lock the bytes of ports that they drew."""
    path = Path(tempfile.gettempdir()) / f"streamgraft-ports-{os.getuid()}"
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None


def reserve(port: int) -> bool:
    """Keep a port from other processes of this user until this one ends; return whether it is ours.

    Environments that start at once could draw the same port, long before anything listens there.
    """
    if (register := _register()) is None:
        return True
    try:
        fcntl.lockf(register, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def is_free(port: int) -> bool:
    """Return whether a server could listen on the loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def choose(
    names: Iterable[str],
    known: Mapping[str, int],
    free: Callable[[int], bool] = is_free,
) -> dict[str, int]:
    """Return a port per name: the known one if it is free, else a new one that is reserved.

    Raises LocalError if there are not enough free ports.
    """
    chosen: dict[str, int] = {}
    candidates = iter(random.sample(range(LOWEST, HIGHEST), HIGHEST - LOWEST))
    for name in names:
        port = known.get(name)
        if port is None or port in chosen.values() or not free(port):
            new = (port for port in candidates if port not in chosen.values())
            port = next((port for port in new if free(port) and reserve(port)), None)
        if port is None:
            raise LocalError(f"no free port between {LOWEST} and {HIGHEST}")
        chosen[name] = port
    return chosen
