"""Replays of regions' last hour: few at once, beside the loop that answers everybody else."""

import asyncio
import time

from streamgraft_autoscaler import Demand, NotReadyError
from streamgraft_metrics_adapter.signals.provider import Provider
from streamgraft_metrics_adapter.signals.what_if import SPAN_SECONDS, WhatIf, what_if
from streamgraft_metrics_adapter.status import TooManyError, UnavailableError

MOST_WAITING = 8
"""Replays that are computed or wait for it; each takes a fraction of a second."""


class Replays:
    """Computes one replay after the other."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._turn = asyncio.Semaphore(1)
        self._waiting = 0

    async def of(self, namespace: str, name: str, target_utilization: float) -> WhatIf:
        """Return the last hour of a region with another target utilization.

        Raises NotFoundError without the region, UnavailableError while too little is known, and
        TooManyError if too many wait for theirs.
        """
        region = self._provider.region(namespace, name)
        demand = self._provider.read(region, "demand").signal()
        assert isinstance(demand, Demand)
        key = (namespace, name)
        samples = self._provider.history.of(key, time.time() - SPAN_SECONDS)
        changes = region.status.changes
        if self._waiting >= MOST_WAITING:
            raise TooManyError(f"{self._waiting} replays are under way")
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(
                    what_if, samples, demand, region.autoscaling, changes, target_utilization
                )
        except NotReadyError as error:
            raise UnavailableError(f"no replay of {namespace}/{name}: {error}") from error
        finally:
            self._waiting -= 1
