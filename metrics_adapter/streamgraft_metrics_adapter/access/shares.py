"""What each caller may take of the adapter, so that none takes it away from the others."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from streamgraft_metrics_adapter.status import TooManyError

_KEYS = 10_000
"""Callers that a rate is remembered of; who was not seen for longest is forgotten first."""


class Share:
    """A number of places; `per_caller` of them at most are one caller's."""

    def __init__(self, places: int, per_caller: int) -> None:
        self._places = places
        self._per_caller = per_caller
        self._in_use: Counter[str] = Counter()

    @contextmanager
    def place(self, caller: str) -> Iterator[None]:
        """Take a place, and give it back. Raises TooManyError if there is none."""
        if self._in_use[caller] >= self._per_caller:
            raise TooManyError(f"{self._per_caller} requests of yours are under way: try again")
        if self._in_use.total() >= self._places:
            raise TooManyError(f"{self._places} requests are under way: try again in a second")
        self._in_use[caller] += 1
        try:
            yield
        finally:
            self._in_use[caller] -= 1
            if not self._in_use[caller]:
                del self._in_use[caller]


class Rate:
    """A caller may do something `burst` times at once, then `per_second` times (token buckets).

    `what` names it in errors.
    """

    def __init__(self, what: str, burst: float, per_second: float) -> None:
        self._what = what
        self._burst = burst
        self._per_second = per_second
        self._left: dict[str, tuple[float, float]] = {}

    def acquire(self, caller: str) -> None:
        """Count one. Raises TooManyError if it is too early for one."""
        left = self._now_left(caller)
        if left < 1:
            wait = (1 - left) / self._per_second
            raise TooManyError(f"too many {self._what}: try again in {max(wait, 1):.0f} s")
        self._set(caller, left - 1)

    def give_back(self, caller: str) -> None:
        """Count one less: it was harmless."""
        self._set(caller, min(self._now_left(caller) + 1, self._burst))

    def _now_left(self, caller: str) -> float:
        now = time.monotonic()
        left, since = self._left.get(caller, (self._burst, now))
        return min(left + (now - since) * self._per_second, self._burst)

    def _set(self, caller: str, left: float) -> None:
        self._left.pop(caller, None)
        if len(self._left) >= _KEYS:
            del self._left[next(iter(self._left))]
        self._left[caller] = left, time.monotonic()
