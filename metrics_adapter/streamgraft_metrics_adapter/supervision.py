"""Parts of the adapter that must not end."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from streamgraft_metrics_adapter import telemetry

log = logging.getLogger(__name__)

RESTART_SECONDS = 5.0


async def kept_running(run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run what must not end, again and again: one part's unexpected error must not end them all."""
    while True:
        try:
            await run()
        except Exception:
            log.exception("a part of the adapter failed unexpectedly, and is started again")
            telemetry.UNEXPECTED_ERRORS.labels("part").inc()
        await asyncio.sleep(RESTART_SECONDS)
