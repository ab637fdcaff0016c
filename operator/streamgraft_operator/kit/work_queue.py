"""A queue of keys: each key once, one worker per key at a time, failed keys again after a while."""

import asyncio
import random
from collections import deque

from streamgraft_common.backoff import doubled
from streamgraft_common.kube.store import Key

FIRST_DELAY = 0.2
LONGEST_DELAY = 30.0


def retry_delay(failures: int) -> float:
    """Return the seconds to wait after so many earlier failures, spread by a fifth."""
    delay = doubled(FIRST_DELAY, failures, LONGEST_DELAY)
    return delay * random.uniform(0.8, 1.0)


class Closed(Exception):
    """The queue hands out nothing any more."""


class WorkQueue:
    """Keys that wait to be reconciled.

    A key added while a worker has it is handed out once more when that worker is done, so no
    change is missed and no key is reconciled twice at a time.
    """

    def __init__(self) -> None:
        self._ready: deque[Key] = deque()
        self._queued: set[Key] = set()
        self._active: set[Key] = set()
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._resting: dict[Key, asyncio.TimerHandle] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def add(self, key: Key) -> None:
        """Hand `key` out as soon as a worker is free."""
        if key in self._active:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.append(key)
            self._wake_one()

    def add_after(self, key: Key, seconds: float) -> None:
        """Hand `key` out after `seconds`, unless an earlier time is set already."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if (timer := self._timers.get(key)) is not None:
            if timer.when() <= due:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(due, self._due, key)

    def add_rate_limited(self, key: Key) -> None:
        """Hand `key` out again later: each time in a row twice as late, up to a limit."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, retry_delay(failures))

    def forget(self, key: Key) -> None:
        """Forget earlier failures of `key`."""
        self._failures.pop(key, None)

    async def get(self) -> Key:
        """Wait for a key; the caller owes `done`. Raises Closed."""
        while not self._ready and not self._closed:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        if self._closed:
            raise Closed
        key = self._ready.popleft()
        self._queued.discard(key)
        self._active.add(key)
        return key

    def done(self, key: Key, rest_seconds: float = 0.0) -> None:
        """Give `key` back; it is not handed out again before `rest_seconds` have passed."""
        if rest_seconds > 0:
            loop = asyncio.get_running_loop()
            self._resting[key] = loop.call_later(rest_seconds, self._rested, key)
        else:
            self._rested(key)

    def _rested(self, key: Key) -> None:
        self._resting.pop(key, None)
        self._active.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Hand out nothing any more, whatever waits; what was handed out may still be done."""
        self._closed = True
        for timer in (*self._timers.values(), *self._resting.values()):
            timer.cancel()
        self._timers.clear()
        self._resting.clear()
        while self._waiters:
            self._wake_one()

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
