"""Loopback ports that nothing else uses.

They come from below the range from which Linux takes the ports of outgoing connections (32768 and
up), so that a port stays free while its component restarts.
"""

import random
import socket
from collections.abc import Callable, Iterable, Mapping

LOWEST, HIGHEST = 20000, 32000


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
    """Return a port per name: the known one if it is free, else a new one.

    Raises RuntimeError if there are not enough free ports.
    """
    chosen: dict[str, int] = {}
    candidates = iter(random.sample(range(LOWEST, HIGHEST), HIGHEST - LOWEST))
    for name in names:
        port = known.get(name)
        while port is None or port in chosen.values() or not free(port):
            port = next(candidates, None)
            if port is None:
                raise RuntimeError(f"no free port between {LOWEST} and {HIGHEST}")
        chosen[name] = port
    return chosen
