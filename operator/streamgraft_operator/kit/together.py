"""Several writes at once, none of which outlives the reconcile that it belongs to."""

import asyncio
from collections.abc import Awaitable, Iterable


async def together(works: Iterable[Awaitable[object]]) -> None:
    """Wait until all have ended, then raise what the first that failed raised.

    `asyncio.gather` raises at once and lets the others go on: what they write then arrives after
    the next reconcile has decided something else (found by the simulation: a PE created with shards
    that had moved on).
    """
    for result in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
