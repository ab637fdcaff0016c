"""The end of a pod: requested once, with a deadline that can only move closer."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Termination:
    """Shared by everything that works for one pod."""

    def __init__(self) -> None:
        self._requested = asyncio.Event()
        self._deadline = math.inf
        self._timers: set[asyncio.Timeout] = set()

    @property
    def requested(self) -> bool:
        """Whether the pod is to end."""
        return self._requested.is_set()

    def request(self, grace_seconds: float) -> None:
        """Ask everything to end within the grace period; a shorter one later on counts."""
        deadline = asyncio.get_running_loop().time() + grace_seconds
        self._deadline = min(self._deadline, deadline)
        self._requested.set()
        for timer in self._timers:
            when = timer.when()
            if not timer.expired() and (when is None or when > self._deadline):
                timer.reschedule(self._deadline)

    async def wait(self) -> None:
        """Return once it is requested."""
        await self._requested.wait()

    async def sleep(self, seconds: float) -> None:
        """Sleep, but no longer than until it is requested."""
        try:
            async with asyncio.timeout(seconds):
                await self._requested.wait()
        except TimeoutError:
            return

    @asynccontextmanager
    async def limit(self, grace_seconds: float) -> AsyncIterator[None]:
        """Raise TimeoutError in the body after the grace period or at the pod's deadline."""
        deadline = asyncio.get_running_loop().time() + grace_seconds
        async with asyncio.timeout_at(min(deadline, self._deadline)) as timer:
            self._timers.add(timer)
            try:
                yield
            finally:
                self._timers.discard(timer)
