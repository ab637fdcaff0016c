"""From what was observed of a region to its signals, by the equations of the autoscaler."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streamgraft_autoscaler import (
    Demand,
    GatedLagChange,
    NotReady,
    Reason,
    RelativeLagChange,
    StageLoad,
    Surroundings,
    TotalLag,
    Utilization,
    demand,
    gated_lag_change,
    relative_lag_change,
    total_lag,
    utilization,
)
from streamgraft_metrics_adapter.experience import Known
from streamgraft_metrics_adapter.observations import (
    FIRST_STAGE,
    RegionObservation,
    StageObservation,
)
from streamgraft_metrics_adapter.policies import blackout, policy_of
from streamgraft_metrics_adapter.queries import Input
from streamgraft_metrics_adapter.regions import Region

Signal = TotalLag | RelativeLagChange | GatedLagChange | Utilization | Demand
"""A result of the autoscaler: its value, and its inputs beside it."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A region, what was seen of it, and what is known of it from before."""

    region: Region
    observation: RegionObservation
    known: Known

    def stages(self) -> dict[str, StageObservation] | NotReady:
        """Return the stages, or NotReady unless each has every partition's lag and rates."""
        stages = self.observation.stages
        if FIRST_STAGE not in stages:
            return NotReady(Reason.NO_DATA, "the region's first stage is not measured")
        for index, stage in stages.items():
            lag = total_lag(stage.topics(), self.region.spec.max_width)
            if isinstance(lag, NotReady):
                return lag
            known = stage.values.get(Input.HISTORIES, 0)
            wanted = sum(stage.partitions.values())
            if known < wanted:
                message = f"rates are known for {known:g} of {wanted} partitions of stage {index}"
                return NotReady(Reason.NO_DATA, message)
            resets = _value(stage, Input.RESETS)
            if isinstance(resets, NotReady):
                return resets
            if resets > 0:
                message = f"committed positions of stage {index} stepped back within the window"
                return NotReady(Reason.RESET, message)
        return stages


def lag_signal(situation: Situation) -> TotalLag | NotReady:
    """Return the records that wait in front of the region and between its stages."""
    topics = [topic for stage in situation.observation.stages.values() for topic in stage.topics()]
    return total_lag(topics, situation.region.spec.max_width)


def change_signal(situation: Situation) -> RelativeLagChange | NotReady:
    """Return Eq. 3: lag of all stages against the rate of the first."""
    stages = situation.stages()
    if isinstance(stages, NotReady):
        return stages
    rate = _value(stages[FIRST_STAGE], Input.PROCESSING_RATE)
    changes = [_value(stage, Input.LAG_CHANGE) for stage in stages.values()]
    if isinstance(rate, NotReady):
        return rate
    total = 0.0
    for change in changes:
        if isinstance(change, NotReady):
            return change
        total += change
    return relative_lag_change(total, rate, overshoot=situation.region.autoscaling.overshoot)


def gated_signal(situation: Situation) -> GatedLagChange | NotReady:
    """Return Eq. 4 with the region's lag threshold."""
    if reason := blackout(situation.region, situation.known.now):
        return reason
    lag, change = lag_signal(situation), change_signal(situation)
    if isinstance(lag, NotReady):
        return lag
    if isinstance(change, NotReady):
        return change
    return gated_lag_change(lag, change, situation.region.autoscaling.lag_threshold)


def utilization_signal(situation: Situation) -> Utilization | NotReady:
    """Return Eq. 5 over the PEs of all stages that hold shards."""
    if reason := blackout(situation.region, situation.known.now):
        return reason
    values = situation.observation.values
    if Input.IDLE_SHARE not in values:
        return NotReady(Reason.NO_DATA, "busy time of no PE is known")
    expected = situation.region.width * max(len(situation.observation.stages), 1)
    return utilization(values[Input.IDLE_SHARE], int(values.get(Input.ELEMENTS, 0)), expected)


def demand_signal(situation: Situation) -> Demand | NotReady:
    """Return the channels that the load needs."""
    if reason := blackout(situation.region, situation.known.now):
        return reason
    stages = situation.stages()
    if isinstance(stages, NotReady):
        return stages
    loads: dict[str, StageLoad] = {}
    for index, stage in stages.items():
        rate, batches = _value(stage, Input.INPUT_RATE), _value(stage, Input.BATCH_RATE)
        largest = _value(stage, Input.LARGEST_SHARD)
        if isinstance(rate, NotReady):
            return rate
        if isinstance(batches, NotReady):
            return batches
        if isinstance(largest, NotReady):
            return largest
        loads[index] = StageLoad(
            input_rate=rate,
            lag=sum(stage.lag.values()),
            batch_seconds=situation.region.spec.max_width / batches if batches else 0.0,
            largest_shard=largest,
            capacity=situation.known.capacities.get(index),
        )
    known = situation.known
    around = Surroundings(situation.region.width, known.forecast_rate, known.neighbourhood)
    state = situation.observation.values.get(Input.STATE_BYTES)
    if state is None:
        return NotReady(Reason.NO_DATA, "state bytes is not measured")
    return demand(loads, policy_of(situation.region, known, state), around)


def _value(stage: StageObservation, name: Input) -> float | NotReady:
    if name in stage.values:
        return stage.values[name]
    return NotReady(Reason.NO_DATA, f"{name.value.replace('_', ' ')} is not measured")


SIGNALS: Mapping[str, Callable[[Situation], Signal | NotReady]] = {
    "total_lag": lag_signal,
    "relative_lag_change_rate": change_signal,
    "relative_lag_change_rate_gated": gated_signal,
    "utilization": utilization_signal,
    "demand": demand_signal,
}
"""Every metric that is served, by name."""
