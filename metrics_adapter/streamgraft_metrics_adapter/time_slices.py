"""Long work in the event loop, a millisecond at a time: requests never wait for more.

A thread would not do: after each system call the loop would have to win Python's lock back from
the thread, which keeps it for a switch interval each time, and a request makes several calls.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

SLICE_SECONDS = 0.001
"""After which whatever else is due may run: a request takes a few of the loop's rounds."""

T = TypeVar("T")


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield the items; between two of them the event loop runs whenever a time slice is over."""
    began = time.perf_counter()
    for item in items:
        yield item
        if time.perf_counter() - began > SLICE_SECONDS:
            await asyncio.sleep(0)
            began = time.perf_counter()
