"""Regions and their signals, computed at every refresh and answered from memory.

The metrics API asks for single signals, the REST routes for all of a region's.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from streamgraft_autoscaler import FIRST_STAGE, Demand, NotReady, NotReadyError, Reason
from streamgraft_common.kube.store import Key
from streamgraft_metrics_adapter import telemetry
from streamgraft_metrics_adapter.learning import learned_metrics
from streamgraft_metrics_adapter.learning.knowledge import Knowledge, Known
from streamgraft_metrics_adapter.objects import LARGEST_VALUE
from streamgraft_metrics_adapter.prometheus.observations import (
    ObservationBuilder,
    RegionObservation,
)
from streamgraft_metrics_adapter.prometheus.queries import Input, queries
from streamgraft_metrics_adapter.prometheus.source import Source, SourceError, answers
from streamgraft_metrics_adapter.regions import Region, RegionCache, RegionKey
from streamgraft_metrics_adapter.selectors import Selector
from streamgraft_metrics_adapter.signals.evaluation import SIGNALS, Signal, require_read, signals_of
from streamgraft_metrics_adapter.signals.history import History, Sample
from streamgraft_metrics_adapter.status import NotFoundError, UnavailableError
from streamgraft_metrics_adapter.time_slices import in_slices

log = logging.getLogger(__name__)


RECALL_SECONDS = 60.0
"""How often replicas compare what they have learned."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One signal of one region."""

    region: Region
    metric: str
    result: Signal | NotReady
    sampled_at: float | None
    """Unix time of its oldest sample, if known."""

    def signal(self) -> Signal:
        """Return the result. Raises UnavailableError if it has no value."""
        if isinstance(self.result, NotReady):
            telemetry.SIGNAL_ERRORS.labels(self.metric, self.result.reason.value).inc()
            raise UnavailableError(
                f"{self.metric} of {self.region.namespace}/{self.region.name} has no value:"
                f" {self.result.reason.value}: {self.result.message}"
            )
        return self.result


@dataclass(frozen=True, slots=True)
class _Refresh:
    """What one refresh brought: results by region and metric, and the oldest sample's time."""

    evaluated_at: float
    results: Mapping[Key, Mapping[str, Signal | NotReady]]
    sampled_at: Mapping[Key, float]


class Provider:
    """Signals of all regions; durations in seconds. A refresher keeps them fresh by `refresh`.

    `learned_from`: matchers of the labels of the targets that learned values are taken from.
    """

    def __init__(
        self,
        regions: RegionCache,
        *,
        window_seconds: float,
        max_age_seconds: float,
        refresh_seconds: float,
        learned_from: str,
    ) -> None:
        self._regions = regions
        self._queries = queries(window_seconds, max_age_seconds, refresh_seconds)
        self._max_age = max_age_seconds
        self._last: _Refresh | None = None
        self._failure: str | None = None
        self._knowledge = Knowledge(window_seconds)
        self._learned_from = learned_from
        self._recalled_at = 0.0
        self._recalled = False
        self.window_seconds = window_seconds
        self.history = History(SIGNALS)
        self.forecasts = self._knowledge.forecasts

    @property
    def ready(self) -> bool:
        """Return whether the regions are there, and a first refresh has succeeded or failed.

        One that failed does: each signal then says why it has no value, but the API is there. While
        no replica is ready the API server can't reach it, and no namespace of the cluster goes.
        """
        return self._regions.synced and (self._last is not None or self._failure is not None)

    @property
    def evaluated_at(self) -> float | None:
        """Return the Unix time of the last refresh that succeeded."""
        return self._last.evaluated_at if self._last else None

    def names(self) -> list[str]:
        """Return the metrics that every region has."""
        return list(SIGNALS)

    def learned(self) -> Iterator[str]:
        """Yield what was learned, as lines of the exposition."""
        known = self._knowledge
        samples = known.samples(self.evaluated_at or 0.0)
        return learned_metrics.lines(samples, known.pauses(), known.needs())

    def region(self, namespace: str, name: str) -> Region:
        """Return a region. Raises NotFoundError, or UnavailableError before the first list."""
        self._need_regions()
        region = self._regions.get(namespace, name)
        if fault := self._regions.fault(namespace, name):
            raise UnavailableError(f"region {namespace}/{name} can't be read: {fault}")
        if region is None:
            raise NotFoundError(f'parallelregions.streamgraft.io "{namespace}/{name}" not found')
        return region

    def regions(self, namespace: str, selector: Selector) -> list[Region]:
        """Return the regions of a namespace that match, by name."""
        self._need_regions()
        return [item for item in self._regions.of(namespace) if selector.matches(item.labels)]

    def by_name(self, namespace: str, name: str, metric: str) -> Reading:
        """Return one signal. Raises NotFoundError for an unknown region or metric."""
        _need_metric(metric)
        return self.read(self.region(namespace, name), metric)

    def by_selector(self, namespace: str, selector: Selector, metric: str) -> list[Reading]:
        """Return a signal of all regions that match. Raises NotFoundError for an unknown metric."""
        _need_metric(metric)
        return [self.read(region, metric) for region in self.regions(namespace, selector)]

    def all_regions(self) -> list[Region]:
        """Return the regions of all namespaces that are known so far."""
        return self._regions.all()

    def read_all(self, region: Region) -> list[Reading]:
        """Return every signal of a region."""
        return self._readings(region, SIGNALS)

    def read(self, region: Region, metric: str) -> Reading:
        """Return a signal of a region, from memory."""
        return self._readings(region, (metric,))[0]

    def _readings(self, region: Region, metrics: Sequence[str]) -> list[Reading]:
        sampled_at = self._sampled_at(region)
        results = self._results_of(region, sampled_at)
        return [Reading(region, metric, results[metric], sampled_at) for metric in metrics]

    async def refresh(self, evaluated_at: float, source: Source) -> None:
        """Compute all signals anew; a refresh that fails leaves the last ones, until too old."""
        builder = ObservationBuilder()
        try:
            await self._recall(evaluated_at, source)
            async with aclosing(answers(source, self._queries, evaluated_at)) as found:
                async for rows in found:
                    async for labels, value in in_slices(rows):
                        builder.add(labels, value)
        except SourceError as error:
            self._fail(str(error))
            return
        if self._failure is not None:
            log.info("Prometheus answers again")
        regions, seen = self._regions.all(), builder.in_records()
        self._last = await self._compute(evaluated_at, regions, seen)
        self._failure = None
        telemetry.REFRESH_TIME.set(evaluated_at)
        if self._regions.synced:
            await self._remember(evaluated_at, regions, seen)

    async def _recall(self, evaluated_at: float, source: Source) -> None:
        """Learn what other replicas know, or this one knew before it was restarted; if that fails,
        in a minute: signals don't wait for it."""
        if evaluated_at - self._recalled_at < RECALL_SECONDS:
            return
        self._recalled_at = evaluated_at
        try:
            for look in learned_metrics.LOOKS:
                query = learned_metrics.query(look, self._learned_from)
                rows = await source.rows("learned", query, evaluated_at)
                found = await learned_metrics.parse(rows, evaluated_at)
                await self._knowledge.adopt(found)
                if found or self._recalled:
                    break
            # Only now: a look that failed must not be the only one that goes far back.
            self._recalled = True
        except SourceError as error:
            log.warning("what was learned can't be read: %s", error)

    def _fail(self, failure: str) -> None:
        if self._failure is None:
            log.warning("Prometheus: %s", failure)
        self._failure = failure

    def _need_regions(self) -> None:
        if not self._regions.synced:
            raise UnavailableError("the regions are not listed yet: the adapter is starting")

    def _sampled_at(self, region: Region) -> float | None:
        return self._last.sampled_at.get((region.namespace, region.name)) if self._last else None

    def _results_of(
        self, region: Region, sampled_at: float | None
    ) -> Mapping[str, Signal | NotReady]:
        """Return what was computed, or for each signal why none of the region may be served now."""
        try:
            return self._served(region, sampled_at)
        except NotReadyError as error:
            return dict.fromkeys(SIGNALS, error.outcome)

    def _served(self, region: Region, sampled_at: float | None) -> Mapping[str, Signal | NotReady]:
        if self._last is None:
            if self._failure:
                raise NotReadyError(Reason.SOURCE_UNAVAILABLE, self._failure)
            raise NotReadyError(Reason.NO_DATA, "nothing was read yet: the adapter is starting")
        age = time.time() - self._last.evaluated_at
        if self._failure and age > self._max_age:
            raise NotReadyError(Reason.SOURCE_UNAVAILABLE, f"for {age:.0f} s: {self._failure}")
        if region.resizing is not None:
            raise NotReadyError(Reason.RESIZING, f"the width is changing: {region.resizing}")
        age = 0.0 if sampled_at is None else time.time() - sampled_at
        if not self._fresh(age):
            message = f"the oldest position is {age:.0f} s old, not within {self._max_age:g} s"
            raise NotReadyError(Reason.STALE, message)
        results = self._last.results.get((region.namespace, region.name))
        if not results:
            raise NotReadyError(Reason.NO_DATA, "no PE of the region reports its lag")
        return results

    def _of_now(self, seen: RegionObservation) -> bool:
        """Return whether what was seen of a region says something of it as it is now."""
        try:
            require_read(seen, self.window_seconds)
        except NotReadyError:
            return False
        return self._fresh(time.time() - seen.values.get(Input.SAMPLE_TIME, 0.0))

    def _fresh(self, age: float) -> bool:
        """Return whether samples of an age, seconds, say something of the region as it is now."""
        # Clocks of scrapes and of this machine are those of two programs: NaN must not pass either.
        return -self._max_age <= age <= self._max_age

    async def _compute(
        self,
        evaluated_at: float,
        regions: list[Region],
        observations: Mapping[RegionKey, RegionObservation],
    ) -> _Refresh:
        results: dict[Key, Mapping[str, Signal | NotReady]] = {}
        sampled_at: dict[Key, float] = {}
        demands: list[tuple[Region, RegionObservation, Demand]] = []
        async for region in in_slices(regions):
            seen = observations.get(region.key)
            if seen is None or Input.SAMPLE_TIME not in seen.values:
                continue
            key, sampled_at[key] = (region.namespace, region.name), seen.values[Input.SAMPLE_TIME]
            results[key] = self._signals(region, seen, evaluated_at)
            demand = results[key]["demand"]
            if isinstance(demand, Demand):
                demands.append((region, seen, demand))
        await self._knowledge.conclude(evaluated_at, demands)
        return _Refresh(evaluated_at, results, sampled_at)

    def _signals(
        self, region: Region, seen: RegionObservation, evaluated_at: float
    ) -> Mapping[str, Signal | NotReady]:
        """Return the signals of a region. Whatever is wrong with its data is its own error."""
        try:
            require_read(seen, self.window_seconds)
            return _servable(signals_of(region, seen, self._known(region, seen, evaluated_at)))
        except NotReadyError as error:
            return dict.fromkeys(SIGNALS, error.outcome)
        except Exception as error:
            log.warning("signals of %s/%s: %r", region.namespace, region.name, error)
            telemetry.UNEXPECTED_ERRORS.labels("region").inc()
            return dict.fromkeys(SIGNALS, NotReady(Reason.INVALID, repr(error)))

    def _known(self, region: Region, seen: RegionObservation, evaluated_at: float) -> Known:
        if region.resizing or self._fresh(time.time() - seen.values[Input.SAMPLE_TIME]):
            self._knowledge.learn(region, seen, evaluated_at)
        return self._knowledge.of(region, evaluated_at)

    async def _remember(
        self,
        evaluated_at: float,
        regions: list[Region],
        observations: Mapping[RegionKey, RegionObservation],
    ) -> None:
        """Keep the history; forget regions that left."""
        async for region in in_slices(regions):
            results = self._results_of(region, self._sampled_at(region))
            seen = observations.get(region.key)
            # Rates are of use amid a width change, too; amid an outage of Kafka they would be 0.
            rated = seen if seen and self._of_now(seen) else None
            sample = _sample(evaluated_at, region, results, rated)
            self.history.add((region.namespace, region.name), sample)
        self.history.keep({(region.namespace, region.name) for region in regions})
        self._knowledge.keep({region.key for region in regions})


def _servable(
    results: Mapping[str, Signal | NotReady],
) -> Mapping[str, Signal | NotReady]:
    """Return the signals, without those whose value is no Kubernetes quantity."""
    return {
        metric: result
        if isinstance(result, NotReady) or abs(result.value) <= LARGEST_VALUE
        else NotReady(Reason.NOT_A_NUMBER, f"the value is {result.value}")
        for metric, result in results.items()
    }


def _sample(
    evaluated_at: float,
    region: Region,
    results: Mapping[str, Signal | NotReady],
    seen: RegionObservation | None,
) -> Sample:
    first = seen.stages.get(FIRST_STAGE) if seen else None
    return Sample(
        time=evaluated_at,
        width=region.status.width,
        wanted_width=region.spec.width,
        input_rate=first.values.get(Input.INPUT_RATE) if first else None,
        processing_rate=first.values.get(Input.PROCESSING_RATE) if first else None,
        signals={
            metric: None if isinstance(result, NotReady) else result.value
            for metric, result in results.items()
        },
    )


def _need_metric(metric: str) -> None:
    if metric not in SIGNALS:
        known = ", ".join(SIGNALS)
        raise NotFoundError(f'metric "{metric}" not found: regions have {known}')
