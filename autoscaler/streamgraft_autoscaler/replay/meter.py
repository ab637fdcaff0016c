"""Takes the signals of a simulated region as the adapter takes those of a real one."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, replace

from streamgraft_autoscaler.capacity import CapacityLearner, Window
from streamgraft_autoscaler.demand import Demand, demand
from streamgraft_autoscaler.economy import Needs
from streamgraft_autoscaler.fitting import Shards
from streamgraft_autoscaler.forecast import SeasonalForecaster
from streamgraft_autoscaler.hpa import PodUsage, Reading
from streamgraft_autoscaler.lag import (
    GatedLagChange,
    TopicLag,
    gated_lag_change,
    relative_lag_change,
    total_lag,
)
from streamgraft_autoscaler.pricing import ChangePrice, measured_price
from streamgraft_autoscaler.readiness import NotReady, Reason, outcome
from streamgraft_autoscaler.replay.region import SimulatedRegion
from streamgraft_autoscaler.stage import DemandPolicy, StageLoad, Surroundings
from streamgraft_autoscaler.utilization import StageIdleness, Utilization, utilization

KAFKA_LAG = "kafka_lag"
"""The lag as others serve it: no matter whether a width changes."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    time: float
    arrived: float
    processed: float
    busy_seconds: float
    lag: float


class Meter:
    """`window_seconds`: over which rates are taken; `lag_threshold`, `overshoot`: of the paper's
    policy; `division`: of the records; `forecast`: whether the demand looks ahead;
    `by_own_changes`: whether a width change costs what the region's own past ones did, instead of
    what the policy says."""

    def __init__(
        self,
        policy: DemandPolicy,
        *,
        window_seconds: float,
        lag_threshold: float,
        overshoot: float,
        division: Shards,
        forecast: bool,
        by_own_changes: bool,
    ) -> None:
        self._policy = policy
        self._by_own_changes = by_own_changes
        self._window = window_seconds
        self._threshold = lag_threshold
        self._overshoot = overshoot
        self._division = division
        self._learner = CapacityLearner()
        self._needs = Needs()
        self._forecaster = SeasonalForecaster() if forecast else None
        self._snapshots: deque[_Snapshot] = deque()
        self._width, self._changed_at = 0, 0.0
        self.demand: Demand | NotReady = NotReady(Reason.NO_DATA, "nothing was seen yet")

    @property
    def input_rate(self) -> float:
        """Return the records/s that arrived over the window."""
        first, last = self._snapshots[0], self._snapshots[-1]
        return (last.arrived - first.arrived) / max(last.time - first.time, 1e-9)

    def look(self, now: float, region: SimulatedRegion) -> None:
        """Take a sample."""
        seen = _Snapshot(now, region.arrived, region.processed, region.busy_seconds, region.lag)
        self._snapshots.append(seen)
        while now - self._snapshots[0].time > self._window:
            self._snapshots.popleft()
        if region.width != self._width:
            self._width, self._changed_at = region.width, now
        if self._forecaster:
            self._forecaster.observe(now, self.input_rate)

    def price(self, region: SimulatedRegion) -> ChangePrice:
        """Return what a width change has to save now."""
        if self._by_own_changes:
            return measured_price(region.changes, self._policy.pause.seconds)
        return self._policy.price

    def readings(self, region: SimulatedRegion, metrics: Collection[str]) -> dict[str, Reading]:
        """Return what the HPA reads now; the metrics of the adapter hold while a width changes."""
        if region.resizing:
            self.demand = NotReady(Reason.RESIZING, "the width is changing")
            known: dict[str, Reading] = {
                name: self.demand for name in metrics if name not in (KAFKA_LAG, "cpu")
            }
        elif len(self._snapshots) < 2:
            known = {}
        else:
            known = self._signals(region, metrics)
        known[KAFKA_LAG] = region.lag
        warm = [PodUsage("measured", round(busy * 1000), 1000) for busy in region.channels_busy]
        cold = [PodUsage("unready", 0, 1000)] * max(region.wanted - region.width, 0)
        known["cpu"] = warm + cold
        return known

    def _signals(self, region: SimulatedRegion, metrics: Collection[str]) -> dict[str, Reading]:
        first, last = self._snapshots[0], self._snapshots[-1]
        seconds = last.time - first.time
        processing = (last.processed - first.processed) / seconds
        busy = (last.busy_seconds - first.busy_seconds) / seconds
        self._learner.observe(Window(last.time, self._window, processing, busy, busy, region.width))
        results: dict[str, Reading] = {}
        if "demand" in metrics:
            self.demand = outcome(lambda: self._demand(last.time, region))
            results["demand"] = _reading(self.demand)
        if "relative_lag_change_rate_gated" in metrics:
            change = (last.lag - first.lag) / seconds
            gated = outcome(lambda: self._gated(last.lag, change, processing))
            results["relative_lag_change_rate_gated"] = _reading(gated)
        if "utilization" in metrics and region.width:
            width = region.width
            share = outcome(lambda: utilization([StageIdleness(1 - busy / width, width)], width))
            results["utilization"] = _reading(share)
        # As the metrics API serves them: quantities, to the nearest thousandth.
        return {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in results.items()
        }

    def _demand(self, now: float, region: SimulatedRegion) -> Demand:
        policy = replace(self._policy, price=self.price(region))
        load = StageLoad(
            self.input_rate,
            region.lag,
            region.batch_seconds,
            self._division.largest,
            self._learner.capacity(now),
            self._division.median,
        )
        forecast = self._forecaster.forecast(now) if self._forecaster else None
        trusted = forecast if forecast and forecast.trusted else None
        steady = now - self._changed_at
        around = Surroundings(region.width, self._needs.past(now), trusted, steady_seconds=steady)
        found = demand({"0": load}, policy, around)
        self._needs.observe(now, found.needed, self.input_rate)
        return found

    def _gated(self, lag: float, change: float, processing: float) -> GatedLagChange:
        total = total_lag([TopicLag("input", lag, 1)], 1)
        relative = relative_lag_change(change, processing, overshoot=self._overshoot)
        return gated_lag_change(total, relative, self._threshold)


def _reading(signal: Demand | GatedLagChange | Utilization | NotReady) -> Reading:
    return signal if isinstance(signal, NotReady) else signal.value
