"""The seam behind all routes: regions and their signals, answered from memory.

Three methods serve the custom metrics API (`by_name`, `by_selector`, `names`), and the REST routes
use the same ones.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streamgraft_autoscaler import NotReady, Reason
from streamgraft_common.kube import Store
from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.capacities import Capacities
from streamgraft_metrics_adapter.history import History, Sample
from streamgraft_metrics_adapter.observations import Observations
from streamgraft_metrics_adapter.queries import Input
from streamgraft_metrics_adapter.regions import Region, region_of
from streamgraft_metrics_adapter.selectors import Selector
from streamgraft_metrics_adapter.signals import (
    FIRST_STAGE,
    SIGNALS,
    Signal,
    Situation,
)
from streamgraft_metrics_adapter.source import PrometheusSource, SourceError
from streamgraft_metrics_adapter.status import NotFoundError, UnavailableError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reading:
    """One signal of one region; `sampled_at` is the Unix time of its oldest sample, if known."""

    region: Region
    metric: str
    result: Signal | NotReady
    sampled_at: float | None

    @property
    def age(self) -> float | None:
        """Return the seconds since its oldest sample, if known."""
        return None if self.sampled_at is None else time.time() - self.sampled_at

    def signal(self) -> Signal:
        """Return the result. Raises UnavailableError if it has no value."""
        if isinstance(self.result, NotReady):
            telemetry.SIGNAL_ERRORS.labels(self.metric, self.result.reason.value).inc()
            raise UnavailableError(
                f"{self.metric} of {self.region.namespace}/{self.region.name} has no value:"
                f" {self.result.reason.value}: {self.result.message}"
            )
        return self.result


class Provider:
    """Signals of all regions; durations in seconds. `run` keeps them fresh."""

    def __init__(
        self,
        regions: Store,
        source: PrometheusSource,
        *,
        refresh_seconds: float,
        window_seconds: float,
        max_age_seconds: float,
    ) -> None:
        self._regions = regions
        self._source = source
        self._refresh_seconds = refresh_seconds
        self._max_age = max_age_seconds
        self._observations: Observations | None = None
        self._trouble: str | None = None
        self._capacities = Capacities(window_seconds)
        self.window_seconds = window_seconds
        self.history = History()

    @property
    def ready(self) -> bool:
        """Return whether both the regions and a first refresh are there."""
        return self._regions.synced.is_set() and self._observations is not None

    def names(self) -> list[str]:
        """Return the metrics that every region has."""
        return list(SIGNALS)

    def region(self, namespace: str, name: str) -> Region:
        """Return a region. Raises NotFoundError, or UnavailableError before the first list."""
        self._need_regions()
        item = self._regions.get((namespace, name))
        if item is None:
            raise NotFoundError(f'parallelregions.streamgraft.io "{namespace}/{name}" not found')
        return region_of(item)

    def regions(self, namespace: str, selector: Selector) -> list[Region]:
        """Return the regions of a namespace that match, by name."""
        self._need_regions()
        found = (region_of(item) for item in self._regions.items())
        return sorted(
            (
                region
                for region in found
                if region.namespace == namespace and selector.matches(region.labels)
            ),
            key=lambda region: region.name,
        )

    def by_name(self, namespace: str, name: str, metric: str) -> Reading:
        """Return one signal. Raises NotFoundError for an unknown region or metric."""
        _need_metric(metric)
        return self.read(self.region(namespace, name), metric)

    def by_selector(self, namespace: str, selector: Selector, metric: str) -> list[Reading]:
        """Return a signal of all regions that match. Raises NotFoundError for an unknown metric."""
        _need_metric(metric)
        return [self.read(region, metric) for region in self.regions(namespace, selector)]

    def read_all(self, region: Region) -> list[Reading]:
        """Return every signal of a region."""
        return [self.read(region, metric) for metric in SIGNALS]

    def read(self, region: Region, metric: str) -> Reading:
        """Return a signal of a region, from memory."""
        seen = self._observations.regions.get(region.key) if self._observations else None
        sampled_at = seen.values.get(Input.SAMPLE_TIME) if seen else None
        situation = self._situation(region, sampled_at)
        if isinstance(situation, NotReady):
            return Reading(region, metric, situation, sampled_at)
        return Reading(region, metric, SIGNALS[metric](situation), sampled_at)

    async def run(self) -> None:
        """Refresh for ever. A refresh that fails leaves the last one, until it is too old."""
        while True:
            started = time.monotonic()
            await self.refresh()
            await asyncio.sleep(max(0.0, self._refresh_seconds - (time.monotonic() - started)))

    async def refresh(self) -> None:
        """Read all inputs once."""
        try:
            self._observations = await self._source.read()
        except SourceError as error:
            if self._trouble is None:
                log.warning("Prometheus: %s", error)
            self._trouble = str(error)
            return
        if self._trouble is not None:
            log.info("Prometheus answers again")
        self._trouble = None
        telemetry.REFRESH_TIME.set(self._observations.evaluated_at)
        if self._regions.synced.is_set():
            self._remember([region_of(item) for item in self._regions.items()])

    def _need_regions(self) -> None:
        if not self._regions.synced.is_set():
            raise UnavailableError("the regions are not listed yet: the adapter is starting")

    def _situation(self, region: Region, sampled_at: float | None) -> Situation | NotReady:
        if self._observations is None:
            if self._trouble:
                return NotReady(Reason.SOURCE_UNAVAILABLE, self._trouble)
            return NotReady(Reason.NO_DATA, "nothing was read yet: the adapter is starting")
        if region.resizing is not None:
            return NotReady(Reason.RESIZING, f"the width is changing: {region.resizing}")
        age = time.time() - self._observations.evaluated_at
        if self._trouble and age > self._max_age:
            return NotReady(Reason.SOURCE_UNAVAILABLE, f"for {age:.0f} s: {self._trouble}")
        observation = self._observations.regions.get(region.key)
        if observation is None or sampled_at is None:
            return NotReady(Reason.NO_DATA, "no PE of the region reports its lag")
        # Clocks of scrapes and of this machine are those of two programs: NaN must not pass either.
        if not time.time() - sampled_at <= self._max_age:
            oldest = f"the oldest sample is {time.time() - sampled_at:.0f} s old"
            return NotReady(Reason.STALE, f"{oldest}, more than {self._max_age:g} s")
        return Situation(region, observation, self._capacities.of(region.key, time.time()))

    def _remember(self, regions: Iterable[Region]) -> None:
        """Keep what outlives a refresh: capacities and the history; forget regions that left."""
        telemetry.SIGNAL.clear()
        known = list(regions)
        for region in known:
            self._learn(region)
            readings = {reading.metric: reading for reading in self.read_all(region)}
            values = {metric: _value(reading) for metric, reading in readings.items()}
            for metric, value in values.items():
                if value is not None:
                    telemetry.SIGNAL.labels(region.namespace, region.name, metric).set(value)
            self.history.add((region.namespace, region.name), self._sample(region, values))
        self.history.keep({(region.namespace, region.name) for region in known})
        self._capacities.keep({region.key for region in known})

    def _learn(self, region: Region) -> None:
        seen = self._observations.regions.get(region.key) if self._observations else None
        situation = self._situation(region, seen.values.get(Input.SAMPLE_TIME) if seen else None)
        if not isinstance(situation, NotReady) and self._observations is not None:
            self._capacities.learn(situation, self._observations.evaluated_at)

    def _sample(self, region: Region, values: Mapping[str, float | None]) -> Sample:
        observations = self._observations
        seen = observations.regions.get(region.key) if observations else None
        first = seen.stages.get(FIRST_STAGE) if seen else None
        return Sample(
            time=observations.evaluated_at if observations else time.time(),
            width=region.status.width,
            wanted_width=region.spec.width,
            input_rate=first.values.get(Input.INPUT_RATE) if first else None,
            processing_rate=first.values.get(Input.PROCESSING_RATE) if first else None,
            signals=values,
        )


def _value(reading: Reading) -> float | None:
    return None if isinstance(reading.result, NotReady) else reading.result.value


def _need_metric(metric: str) -> None:
    if metric not in SIGNALS:
        known = ", ".join(SIGNALS)
        raise NotFoundError(f'metric "{metric}" not found: regions have {known}')
