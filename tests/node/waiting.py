"""Waiting for what other programs do."""

import asyncio
import time
from collections.abc import Awaitable, Callable

PATIENCE_SECONDS = 600.0


async def until(what: str, so: Callable[[], Awaitable[bool]]) -> float:
    """Wait until it is so, and return for how many seconds. Raises AssertionError."""
    began = time.monotonic()
    while not await so():
        assert time.monotonic() - began < PATIENCE_SECONDS, f"not in time: {what}"
        await asyncio.sleep(0.1)
    return time.monotonic() - began
