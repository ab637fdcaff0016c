"""One replica of the operator: waits for the lease, operates while it has it, hands it over."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from streamgraft_operator.kit.leadership import Elector

log = logging.getLogger(__name__)

DRAIN_SECONDS = 10.0
"""How long what is in hand may take when the replica leaves; less than its pod's grace period."""

Work = Callable[[asyncio.Event], Coroutine[Any, Any, None]]
"""Operates until the event is set, then finishes what it has in hand."""


async def run(elector: Elector, work: Work, stopping: asyncio.Event) -> None:
    """`work` whenever the lease is ours, until `stopping`."""
    while not stopping.is_set():
        log.info("waiting for the lease")
        acquiring = asyncio.ensure_future(elector.acquire())
        leaving = asyncio.ensure_future(stopping.wait())
        try:
            await asyncio.wait({acquiring, leaving}, return_when=asyncio.FIRST_COMPLETED)
            acquired = acquiring.done()
        finally:
            await _end(acquiring, leaving)
        if acquired:
            await _lead(elector, work, stopping)


async def _lead(elector: Elector, work: Work, stopping: asyncio.Event) -> None:
    """Work until the replica leaves, loses the lease, or fails; then give the lease up."""
    log.info("leading")
    finish = asyncio.Event()
    holding = asyncio.ensure_future(elector.hold())
    working = asyncio.ensure_future(work(finish))
    leaving = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait({holding, working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finish.set()
        # Without the lease this returns at once: nothing can be finished any more.
        await asyncio.wait(
            {holding, working}, timeout=DRAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        await _end(holding, working, leaving)
        await elector.release()
    if not working.cancelled():
        working.result()


async def _end(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
