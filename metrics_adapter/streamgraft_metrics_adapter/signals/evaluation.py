"""From what was observed of a region to its signals, by the equations of the autoscaler."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from streamgraft_autoscaler import (
    FIRST_STAGE,
    Capacity,
    Demand,
    ExpectedDemand,
    GatedLagChange,
    NotReady,
    NotReadyError,
    Reason,
    RelativeLagChange,
    StageIdleness,
    StageLoad,
    Surroundings,
    TotalLag,
    Utilization,
    demand,
    expected_demand,
    gated_lag_change,
    outcome,
    relative_lag_change,
    total_lag,
    utilization,
)
from streamgraft_metrics_adapter.learning.knowledge import Known
from streamgraft_metrics_adapter.prometheus.observations import RegionObservation, StageObservation
from streamgraft_metrics_adapter.prometheus.queries import Input
from streamgraft_metrics_adapter.regions import Region
from streamgraft_metrics_adapter.signals.policies import (
    policy_of,
    refuse_blackout,
    scheduled_soon,
)

Signal = TotalLag | RelativeLagChange | GatedLagChange | Utilization | Demand | ExpectedDemand
"""A result of the autoscaler: its value, and its inputs beside it."""


SIGNALS = (
    "total_lag",
    "relative_lag_change_rate",
    "relative_lag_change_rate_gated",
    "utilization",
    "demand",
    "expected_demand",
)
"""Every metric that is served."""

LEAST_POSITION_AGE = 10.0
"""Seconds: positions may be so old in any window. PEs read them every second."""


def signals_of(
    region: Region, seen: RegionObservation, known: Known
) -> dict[str, Signal | NotReady]:
    """Return the signals of a region, from what was seen of it and is known from before."""
    evaluation = _Evaluation(region, seen, known)
    computations: tuple[Callable[[], Signal], ...] = (
        evaluation.lag,
        evaluation.change,
        evaluation.gated,
        evaluation.utilization,
        evaluation.demand,
        evaluation.expected_demand,
    )
    results = map(outcome, computations)
    return dict(zip(SIGNALS, results, strict=True))


def require_read(seen: RegionObservation, window_seconds: float) -> None:
    """Raise NotReadyError if the positions were not read from Kafka for too long: they say nothing
    of now.

    A quarter of the window without a reading makes slopes wrong that are taken over it.
    """
    age = seen.values.get(Input.POSITION_AGE)
    if age is None:
        raise NotReadyError(Reason.NO_DATA, "it is not known when the positions in Kafka were read")
    if age <= max(LEAST_POSITION_AGE, window_seconds / 4):
        return
    message = f"positions in Kafka were not read for {age:.0f} s within the last"
    raise NotReadyError(Reason.STALE, f"{message} {window_seconds:g} s: does Kafka answer the PEs?")


@dataclass(frozen=True)
class _Evaluation:
    """The signals of one region; each method returns one or raises NotReadyError."""

    region: Region
    seen: RegionObservation
    known: Known

    def lag(self) -> TotalLag:
        """Return the records that wait in front of the region and between its stages."""
        _require_stages(self.region, self.seen)
        topics = [topic for stage in self.seen.stages.values() for topic in stage.topics()]
        return total_lag(topics, self.region.spec.max_width)

    def change(self) -> RelativeLagChange:
        """Return Eq. 3: lag of all stages against the rate of the first."""
        stages = self._stages
        rate = _value(stages[FIRST_STAGE], Input.PROCESSING_RATE)
        total = sum(_value(stage, Input.LAG_CHANGE) for stage in stages.values())
        return relative_lag_change(total, rate, overshoot=self.region.autoscaling.overshoot)

    def gated(self) -> GatedLagChange:
        """Return Eq. 4 with the region's lag threshold."""
        refuse_blackout(self.region, self.known.now)
        threshold = self.region.autoscaling.lag_threshold
        return gated_lag_change(self.lag(), self.change(), threshold)

    def utilization(self) -> Utilization:
        """Return Eq. 5 over the PEs of all stages that hold shards."""
        refuse_blackout(self.region, self.known.now)
        _require_stages(self.region, self.seen)
        weights = {str(index): item.weight for index, item in enumerate(self.region.spec.stages)}
        stages = [
            StageIdleness(
                stage.values[Input.IDLE_SHARE],
                int(stage.values.get(Input.ELEMENTS, 0)),
                weights.get(index, 1.0),
            )
            for index, stage in self.seen.stages.items()
            if Input.IDLE_SHARE in stage.values
        ]
        return utilization(stages, self.region.width * len(self.seen.stages))

    def demand(self) -> Demand:
        """Return the channels that the load needs."""
        refuse_blackout(self.region, self.known.now)
        return self._demand

    def expected_demand(self) -> ExpectedDemand:
        """Return the channels that the load is expected to need soon, also amid a blackout, which
        is over by then."""
        return expected_demand(self._demand, scheduled_soon(self.region, self.known.now))

    @cached_property
    def _demand(self) -> Demand:
        region, known = self.region, self.known
        loads = {
            index: _load(region, stage, known.capacities.get(index))
            for index, stage in self._stages.items()
        }
        state = self.seen.values.get(Input.STATE_BYTES, 0.0 if region.status.asleep else None)
        if state is None:
            raise NotReadyError(Reason.NO_DATA, "state bytes is not measured")
        around = Surroundings(
            region.width,
            known.past,
            known.trusted_forecast,
            known.neighbourhood,
            known.now - region.changed_at,
        )
        return demand(loads, policy_of(region, known, state), around)

    @cached_property
    def _stages(self) -> dict[str, StageObservation]:
        """The stages, each with every partition's lag and rates."""
        region, stages = self.region, self.seen.stages
        _require_stages(region, self.seen)
        for index, stage in stages.items():
            total_lag(stage.topics(), region.spec.max_width)
            known = stage.values.get(Input.HISTORIES, 0)
            wanted = sum(stage.partitions.values())
            if known < wanted:
                message = f"rates are known for {known:g} of {wanted} partitions of stage {index}"
                raise NotReadyError(Reason.NO_DATA, message)
            if _value(stage, Input.RESETS) > 0:
                message = f"committed positions of stage {index} stepped back within the window"
                raise NotReadyError(Reason.RESET, message)
        return stages


def _require_stages(region: Region, seen: RegionObservation) -> None:
    """Raise NotReadyError if nobody measures a stage or topic of the region."""
    if FIRST_STAGE not in seen.stages:
        raise NotReadyError(Reason.NO_DATA, "the region's first stage is not measured")
    for index, wanted in enumerate(region.spec.stages):
        stage = seen.stages.get(str(index))
        lost = [topic for topic in wanted.topics if stage is None or topic not in stage.lag]
        if lost:
            message = f"the lag of {', '.join(lost)}, which stage {index} reads, is not measured"
            raise NotReadyError(Reason.NO_DATA, message)


def _load(region: Region, stage: StageObservation, capacity: Capacity | None) -> StageLoad:
    # Who sleeps runs no batches, and has no shard that would be measured.
    default = 0.0 if region.status.asleep else None
    rate, batches = _value(stage, Input.INPUT_RATE), _value(stage, Input.BATCH_RATE, default)
    largest = _value(stage, Input.LARGEST_RATE, default)
    median = _value(stage, Input.MEDIAN_RATE, rate if region.status.asleep else None)
    # Hot shards are spread over channels, unless nobody knows which they are.
    spread = not all(item.real_time for item in region.spec.stages)
    return StageLoad(
        input_rate=rate,
        lag=sum(stage.lag.values()),
        batch_seconds=1 / batches if batches else 0.0,
        largest_shard=min(largest / rate, 1.0) if rate > 0 else 0.0,
        median_shard=min(max(median / rate, 0.0), 1.0) if rate > 0 and spread else 1.0,
        capacity=capacity,
    )


def _value(stage: StageObservation, name: Input, default: float | None = None) -> float:
    found = stage.values.get(name, default)
    if found is None:
        raise NotReadyError(Reason.NO_DATA, f"{name.value.replace('_', ' ')} is not measured")
    return found
