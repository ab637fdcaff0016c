"""What the adapter has learned of regions: kept in memory, from refresh to refresh."""

import logging
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from streamgraft_autoscaler import FIRST_STAGE, Capacity, CapacitySample, Demand
from streamgraft_autoscaler.economy import UNKNOWN, Needs, Past
from streamgraft_autoscaler.forecast import Forecast
from streamgraft_autoscaler.pause import LONGEST_SECONDS, MeasuredPause
from streamgraft_autoscaler.propagation import ALONE, Neighbourhood, RegionFlow, neighbourhoods
from streamgraft_autoscaler.stage import attainable_throughput
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_metrics_adapter.learning.capacities import Capacities
from streamgraft_metrics_adapter.learning.forecasts import Forecasts
from streamgraft_metrics_adapter.learning.learned_metrics import Learned
from streamgraft_metrics_adapter.prometheus.observations import RegionObservation
from streamgraft_metrics_adapter.prometheus.queries import Input
from streamgraft_metrics_adapter.regions import Region, RegionKey
from streamgraft_metrics_adapter.time_slices import in_slices

log = logging.getLogger(__name__)

PAUSES = 20
"""Measured pauses of a region that count: the newest ones."""


@dataclass(frozen=True, slots=True)
class Known:
    """What was known of one region at a refresh."""

    now: float
    """Unix time of the refresh."""
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    pauses: tuple[MeasuredPause, ...] = ()
    past: Past = UNKNOWN
    forecast: Forecast | None = None
    neighbourhood: Neighbourhood = ALONE

    @property
    def trusted_forecast(self) -> Forecast | None:
        """Return the forecast, None without one that proved right."""
        return self.forecast if self.forecast and self.forecast.trusted else None


class Knowledge:
    """All that is learned; `window_seconds`: over which rates are taken.

    `forecasts` are learned elsewhere, from the days that Prometheus remembers.
    Its iterators bear that more is learned while they are read, interleaved with a refresh.
    """

    def __init__(self, window_seconds: float) -> None:
        self._window_seconds = window_seconds
        self._capacities = Capacities(window_seconds)
        self._changed_at: dict[RegionKey, float] = {}
        self._pauses: dict[RegionKey, dict[int, MeasuredPause]] = {}
        self._needs: dict[RegionKey, Needs] = {}
        self.forecasts = Forecasts()
        self._neighbourhoods: dict[RegionKey, Neighbourhood] = {}

    def learn(self, region: Region, seen: RegionObservation, now: float) -> None:
        """Learn from what one refresh saw of a region.

        A window that reaches back into a width change mixes two widths and what a hand-over leaves
        behind, so it tells nothing of a channel.
        """
        if region.resizing is not None:
            self._changed_at[region.key] = now
            return
        changed_at = max(self._changed_at.get(region.key, 0.0), region.changed_at)
        if now - changed_at > self._window_seconds:
            self._capacities.learn(region, seen, now)
        state = seen.values.get(Input.STATE_BYTES, 0.0)
        pauses = self._pauses.setdefault(region.key, {})
        for change in region.status.changes:
            # What was rolled back took as long as what kept it from being done.
            if change.pause_seconds_max is not None and not (change.rollback or change.failure):
                measured = MeasuredPause(min(change.pause_seconds_max, LONGEST_SECONDS), state)
                pauses.setdefault(int(from_rfc3339(change.requested_at)), measured)
        for changed_at in sorted(pauses)[:-PAUSES]:
            del pauses[changed_at]

    def of(self, region: Region, now: float) -> Known:
        """Return what is known of a region at a Unix time."""
        needs = self._needs.get(region.key)
        return Known(
            now,
            self._capacities.of(region.key, now),
            tuple(self._pauses.get(region.key, {}).values()),
            needs.past(now) if needs else UNKNOWN,
            self.forecasts.of(region.key, now),
            self._neighbourhoods.get(region.key, ALONE),
        )

    async def conclude(
        self, now: float, demands: Iterable[tuple[Region, RegionObservation, Demand]]
    ) -> None:
        """Remember what was needed, and find out what the regions of each job mean for each other,
        for the next refresh."""
        flows: dict[tuple[str, str], dict[str, RegionFlow]] = {}
        async for region, seen, demand in in_slices(demands):
            try:
                rate = demand.stages[FIRST_STAGE].load.input_rate
                self._needs.setdefault(region.key, Needs()).observe(now, demand.needed, rate)
                flow = _flow(region, seen, demand)
            except Exception as error:  # what a region's metrics say is its own error
                log.warning("needs of %s/%s: %r", region.namespace, region.name, error)
                continue
            if flow is not None:
                flows.setdefault(region.key[:2], {})[region.spec.region] = flow
        self._neighbourhoods = {
            (*job, name): around
            async for job, regions in in_slices(flows.items())
            for name, around in _around(job, regions).items()
        }

    def samples(self, now: float) -> Iterator[tuple[RegionKey, str, CapacitySample]]:
        """Yield what was learned of capacities, as `Capacities.samples`."""
        return self._capacities.samples(now)

    def pauses(self) -> Iterator[tuple[RegionKey, int, MeasuredPause]]:
        """Yield the measured pauses, with the region and when the change was asked for (whole Unix
        seconds; a region that is made anew counts its epochs from the start)."""
        for key, found in list(self._pauses.items()):
            for changed_at, pause in list(found.items()):
                yield key, changed_at, pause

    def needs(self) -> Iterator[tuple[RegionKey, float, Mapping[int, float]]]:
        """Yield what was needed lately, with the region; as `Needs.known`."""
        for key, needs in list(self._needs.items()):
            if known := needs.known():
                yield key, *known

    async def adopt(self, learned: Learned) -> None:
        """Take over what another replica, or this one before it was restarted, has learned."""
        async for key, index, sample in in_slices(learned.samples):
            self._capacities.adopt(key, index, sample)
        async for key, changed_at, pause in in_slices(learned.pauses):
            self._pauses.setdefault(key, {}).setdefault(changed_at, pause)
        async for place, since in in_slices(learned.since.items()):
            needed = learned.needed.get(place, {})
            self._needs.setdefault(place[0], Needs()).adopt(since, needed)

    def keep(self, keys: Collection[RegionKey]) -> None:
        """Forget all regions but these."""
        self._capacities.keep(keys)
        self._changed_at = {key: at for key, at in self._changed_at.items() if key in keys}
        self._pauses = {key: found for key, found in self._pauses.items() if key in keys}
        self._needs = {key: found for key, found in self._needs.items() if key in keys}


def _around(job: tuple[str, str], regions: Mapping[str, RegionFlow]) -> Mapping[str, Neighbourhood]:
    try:
        return neighbourhoods(regions)
    except Exception as error:  # what one job says of itself is its own error
        log.warning("regions of job %s/%s: %r", *job, error)
        return {}


def _flow(region: Region, seen: RegionObservation, demand: Demand) -> RegionFlow | None:
    around = demand.surroundings
    limits = {
        name: limit
        for name, stage in demand.stages.items()
        if stage.certain
        and (limit := attainable_throughput(stage.load, demand.policy, around.width)) is not None
    }
    if not limits:
        return None

    def room(name: str) -> tuple[float, bool]:
        flow = demand.stages[name].flow
        return limits[name] / flow if flow > 0 else math.inf, name != demand.stage

    tightest = min(limits, key=room)
    stage, limit = demand.stages[tightest], limits[tightest]
    processing = seen.stage(tightest).values.get(Input.PROCESSING_RATE)
    if processing is None:
        return None
    # Its own work, without what its neighbours made of it.
    work = stage.flow / (around.neighbourhood.usable * around.neighbourhood.growth)
    arriving = demand.stages[FIRST_STAGE].load.input_rate
    other = arriving if region.spec.other_inputs else 0.0
    return RegionFlow(work, processing, limit, region.spec.upstream, other)
