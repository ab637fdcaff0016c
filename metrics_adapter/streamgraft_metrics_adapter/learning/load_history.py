"""Reads from Prometheus what came in at regions in the past days, for their forecasts.

At its start, and for regions that are new to it, the adapter reads all that a forecast remembers, a
day of all of them at a time; later, each quarter of an hour when it is over. What a refresh sees is
not used: an adapter that was away, or started within a quarter, knows it as well as any other.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from streamgraft_autoscaler.forecast import (
    BUCKET_SECONDS,
    DAY_BUCKETS,
    MEMORY_BUCKETS,
    bucket_of,
)
from streamgraft_metrics_adapter.learning.forecasts import Forecasts
from streamgraft_metrics_adapter.prometheus.queries import past_rates
from streamgraft_metrics_adapter.prometheus.source import RangeSource, Series, SourceError
from streamgraft_metrics_adapter.regions import RegionCache, RegionKey
from streamgraft_metrics_adapter.time_slices import in_slices

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
SETTLING_SECONDS = 15.0
"""A scrape's samples carry the time at which it began, and come in up to its timeout (10 s) later:
who read earlier would know less than other replicas."""
FIRST_RETRY_SECONDS = 30.0
"""Doubled with each failure, up to a quarter of an hour."""


@dataclass
class Unread:
    """Regions that are known up to the same quarter of an hour."""

    keys: set[RegionKey]
    first: int
    """The first quarter of an hour that is not known."""


class LoadHistoryReader:
    """Keeps the forecasts of all regions that ask for one."""

    def __init__(self, source: RangeSource, regions: RegionCache, forecasts: Forecasts) -> None:
        self._source = source
        self._regions = regions
        self._forecasts = forecasts
        self._unread: list[Unread] = []
        self._most = DAY_BUCKETS
        self._retry_seconds = 0.0

    async def run(self) -> None:
        """Read for ever."""
        while True:
            if self._regions.synced:
                await self.look(time.time())
            await asyncio.sleep(self._retry_seconds or LOOK_SECONDS)

    async def look(self, now: float) -> None:
        """Read what is over at a Unix time and was not read yet; if that fails, next time."""
        end = bucket_of(now - SETTLING_SECONDS)
        regions = in_slices(self._regions.all())
        wanted = {item.key async for item in regions if item.autoscaling.forecast}
        self._forecasts.keep(wanted)
        new = self._sort(wanted, end)
        try:
            for unread in self._unread:
                await self._read(unread, end)
        except SourceError as error:
            self._fail(str(error))
            return
        if self._retry_seconds:
            log.info("the past days are read again")
        self._retry_seconds = 0.0
        self._unread = [Unread(wanted, end)]
        if new:
            await self._tell(new, now)

    def _sort(self, wanted: set[RegionKey], end: int) -> set[RegionKey]:
        """Return the regions that are new; forget those that left."""
        new = set(wanted)
        for unread in self._unread:
            unread.keys &= wanted
            new -= unread.keys
        if new:
            self._unread.append(Unread(new, end - MEMORY_BUCKETS))
        return new

    async def _read(self, unread: Unread, end: int) -> None:
        """Read oldest first, as forecasts learn. Raises SourceError; what was read is known."""
        while unread.keys and unread.first < end:
            last = min(unread.first + self._most, end)
            found = await self._rates(unread.keys, unread.first, last)
            async for labels, values in in_slices(found):
                key = (
                    labels.get("namespace", ""),
                    labels.get("streams_job", ""),
                    labels.get("region", ""),
                )
                if key in unread.keys:
                    self._forecasts.learn(key, values)
            unread.first = last
            self._most = min(self._most * 2, DAY_BUCKETS)

    async def _rates(self, keys: Collection[RegionKey], first: int, end: int) -> Iterator[Series]:
        # A quarter is evaluated when it is over.
        times = ((first + 1) * BUCKET_SECONDS, end * BUCKET_SECONDS)
        promql = past_rates({job for _, job, _ in keys})
        return await self._source.series("days", promql, times, BUCKET_SECONDS)

    async def _tell(self, new: Collection[RegionKey], now: float) -> None:
        foreseen = 0
        async for key in in_slices(new):
            foreseen += self._forecasts.of(key, now) is not None
        log.info("read the past days of %d regions: %d have a forecast", len(new), foreseen)

    def _fail(self, failure: str) -> None:
        """Wait before the next try, and ask for less: a day may be more than Prometheus allows."""
        retry = min(self._retry_seconds * 2 or FIRST_RETRY_SECONDS, BUCKET_SECONDS)
        text = "the past days can't be read, so forecasts wait; next try in %g s: %s"
        log.log(logging.DEBUG if self._retry_seconds else logging.WARNING, text, retry, failure)
        self._retry_seconds = retry
        self._most = max(self._most // 2, 1)
