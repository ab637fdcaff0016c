"""The one query of a channel in a stage with joint queries, without Spark.

When it stops and starts is decided by `streamgraft_pe_runtime.joint_query`: the very code of a pod.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol


class Part(Protocol):
    """What the query does for one of its shards."""

    failed: asyncio.Future[str]
    """Done once it was fenced off."""

    async def first_batch(self) -> None:
        """Return once it gets on, with batch after batch."""

    def fail(self, why: str) -> None:
        """End amid a batch, unless it has ended so."""

    async def stop(self, deadline_seconds: float) -> bool:
        """Stop at a batch boundary, unless it has failed."""


class FakeJointQuery:
    """Runs all of its parts until it is stopped, or one of them is fenced off."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._begun = asyncio.Event()
        self._beginning = asyncio.create_task(self._begin())

    async def first_batch(self) -> None:
        """Return once it gets on; not if it is stopped before."""
        await self._begun.wait()

    async def failure(self) -> str:
        """Return once a part was fenced off; the others end with it."""
        await asyncio.wait(
            {part.failed for part in self._parts}, return_when=asyncio.FIRST_COMPLETED
        )
        why = next(part.failed.result() for part in self._parts if part.failed.done())
        for part in self._parts:
            part.fail(why)
        return why

    async def stop(self, deadline_seconds: float) -> bool:
        """Stop at a batch boundary, unless it has failed."""
        self._beginning.cancel()
        await asyncio.gather(*(part.stop(deadline_seconds) for part in self._parts))
        return True

    async def _begin(self) -> None:
        for part in self._parts:
            await part.first_batch()
        self._begun.set()
