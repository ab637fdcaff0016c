"""Loopback addresses: one /24 of 127.0.0.0/8 per node, one address of it per pod.

Every node on the machine, of whatever cluster, should have a range of its own. The range starts
from a hash of the node's identity; the node holds it by listening on its first address, so a taken
range shows as a failed bind and the next candidate is tried.
"""

import hashlib
from collections.abc import Iterator

NODE_HOST = 1
"""Last octet of the node's own address."""
_FIRST_POD, _LAST_POD = 2, 254
_FIRST_BLOCK = 16 << 8
"""127.0 to 127.15 stay free for people and for resolvers (127.0.0.53, 127.0.1.1)."""
_BLOCKS = (255 << 8) - _FIRST_BLOCK

CAPACITY = _LAST_POD - _FIRST_POD + 1
"""Pods that a range has addresses for."""


class NoFreeAddress(Exception):
    """Every address of the range belongs to a pod."""


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def ranges(identity: str) -> Iterator[str]:
    """Yield all ranges ("127.20.7"), in an order of this identity's own."""
    start = _number(identity)
    for step in range(_BLOCKS):
        block = _FIRST_BLOCK + (start + step) % _BLOCKS
        yield f"127.{block >> 8}.{block & 255}"


class AddressPool:
    """The addresses of one range; the same pod gets the same address wherever possible."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._holders: dict[str, str] = {}

    def claim(self, uid: str, address: str) -> None:
        """Record that a pod has this address already (it was adopted)."""
        self._holders[address] = uid

    def allocate(self, uid: str) -> str:
        """Return the pod's address. Raises NoFreeAddress."""
        for address, holder in self._holders.items():
            if holder == uid:
                return address
        start = _number(uid)
        for step in range(CAPACITY):
            address = f"{self._prefix}.{_FIRST_POD + (start + step) % CAPACITY}"
            if address not in self._holders:
                self._holders[address] = uid
                return address
        raise NoFreeAddress(f"all {CAPACITY} addresses of {self._prefix}.0/24 are taken")

    def release(self, uid: str) -> None:
        """Give back what the pod holds."""
        self._holders = {key: value for key, value in self._holders.items() if value != uid}
