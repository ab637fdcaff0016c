"""What users' Secrets said last, for what is deleted after them.

The deletion of a namespace deletes its Secrets at once, and what the operator still has to remove
elsewhere takes credentials that were in them.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

from streamgraft_common.kube.store import Key

MOST = 1000
"""So many Secrets are remembered: those that were read last."""

_Read = TypeVar("_Read")


class Remembered(Generic[_Read]):
    """What was read of Secrets."""

    def __init__(self) -> None:
        self._read: OrderedDict[Key, _Read] = OrderedDict()

    def note(self, secret: Key, read: _Read) -> None:
        """Take in what a Secret says now."""
        self._read[secret] = read
        self._read.move_to_end(secret)
        if len(self._read) > MOST:
            self._read.popitem(last=False)

    def get(self, secret: Key) -> _Read | None:
        """Return what a Secret said last; None if that is not known."""
        return self._read.get(secret)
