"""Calls to servers that users name, outside of the workers: these may answer late or never.

A worker waits a moment, then goes on with other objects and looks again later.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from streamgraft_common.backoff import doubled
from streamgraft_common.kube.store import Key

PATIENCE_SECONDS = 1.0
"""How long a worker waits for an answer itself: most come within this time."""
PARALLEL = 32
PARALLEL_IN_NAMESPACE = 8
"""Calls of one purpose that wait at a time: a namespace can't keep all the others waiting."""
FIRST_PAUSE_SECONDS = 2.0

_Answer = TypeVar("_Answer")
_Place = tuple[Key, str, str]


class UnderWay(Exception):
    """There is no answer yet: look again in a moment."""


@dataclass
class _Call:
    wanted: str
    task: asyncio.Task[Any]
    failures: int
    begun: float
    ended: float = 0.0


class ExternalCalls:
    """Calls that are under way, by object, purpose and server."""

    def __init__(self) -> None:
        self._calls: dict[_Place, _Call] = {}
        self._all: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(PARALLEL)
        )
        self._in_namespace: defaultdict[tuple[str, str], asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(PARALLEL_IN_NAMESPACE)
        )

    async def ask(
        self,
        key: Key,
        purpose: str,
        wanted: str,
        call: Callable[[], Awaitable[_Answer]],
        *,
        server: str = "",
        longest_pause_seconds: float,
    ) -> _Answer:
        """Return the answer of `call`; `wanted`: what is asked for, another one begins anew.
        `server`: for objects that ask several.

        Raises UnderWay, or what the call raised: until it is called again, after a pause that
        doubles with each failure.
        """
        place = key, purpose, server
        known = self._calls.get(place)
        if known is None or known.wanted != wanted:
            if known:
                known.task.cancel()
            known = self._start(place, wanted, call, 0)
        # Several controllers may ask the same: those that come a little later wait as well.
        if (patience := known.begun + PATIENCE_SECONDS - time.monotonic()) > 0:
            await asyncio.wait({known.task}, timeout=patience)
        if not known.task.done() or known.task.cancelled():
            raise UnderWay
        if (error := known.task.exception()) is None:
            if self._calls.get(place) is known:
                self._calls.pop(place)
            answer: _Answer = known.task.result()
            return answer
        pause = doubled(FIRST_PAUSE_SECONDS, known.failures, longest_pause_seconds)
        if time.monotonic() >= known.ended + pause:
            self._start(place, wanted, call, known.failures + 1)
        raise error.with_traceback(None)

    def forget(self, key: Key, *purposes: str) -> None:
        """Give up the calls of these purposes for an object that is gone."""
        self._give_up(lambda place: place[0] == key and place[1] in purposes)

    def close(self) -> None:
        """Give up all calls."""
        self._give_up(lambda _: True)

    def _give_up(self, which: Callable[[_Place], bool]) -> None:
        for place in list(filter(which, self._calls)):
            self._calls.pop(place).task.cancel()

    def _start(
        self,
        place: _Place,
        wanted: str,
        call: Callable[[], Awaitable[_Answer]],
        failures: int,
    ) -> _Call:
        (namespace, _), purpose, _ = place

        async def work() -> _Answer:
            try:
                async with self._in_namespace[namespace, purpose], self._all[purpose]:
                    return await call()
            finally:
                begun.ended = time.monotonic()

        begun = _Call(wanted, asyncio.ensure_future(work()), failures, time.monotonic())
        self._calls[place] = begun
        return begun
