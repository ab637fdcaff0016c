"""From what was observed of a region to its signals, by the equations of the autoscaler."""

from streamgraft_autoscaler import (
    Capacity,
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
from streamgraft_metrics_adapter.learning.knowledge import Known
from streamgraft_metrics_adapter.prometheus.observations import (
    FIRST_STAGE,
    RegionObservation,
    StageObservation,
)
from streamgraft_metrics_adapter.prometheus.queries import Input
from streamgraft_metrics_adapter.regions import Region
from streamgraft_metrics_adapter.signals.policies import blackout, policy_of

Signal = TotalLag | RelativeLagChange | GatedLagChange | Utilization | Demand
"""A result of the autoscaler: its value, and its inputs beside it."""


SIGNALS = (
    "total_lag",
    "relative_lag_change_rate",
    "relative_lag_change_rate_gated",
    "utilization",
    "demand",
)
"""Every metric that is served."""

LEAST_POSITION_AGE = 10.0
"""Seconds: positions may be so old in any window. PEs read them every second."""

_Stages = dict[str, StageObservation]


def signals_of(
    region: Region, seen: RegionObservation, known: Known
) -> dict[str, Signal | NotReady]:
    """Return the signals of a region, from what was seen of it and is known from before."""
    lag, stages = _lag(region, seen), _usable(region, seen)
    change = stages if isinstance(stages, NotReady) else _change(region, stages)
    held = blackout(region, known.now)
    results = (
        lag,
        change,
        held or _gated(region, lag, change),
        held or _utilization(region, seen),
        held or (stages if isinstance(stages, NotReady) else _demand(region, seen, stages, known)),
    )
    return dict(zip(SIGNALS, results, strict=True))


def unread(seen: RegionObservation, window_seconds: float) -> NotReady | None:
    """Return why the positions say nothing of now: they were not read from Kafka for too long.

    A quarter of the window without a reading makes slopes wrong that are taken over it.
    """
    age = seen.values.get(Input.POSITION_AGE)
    if age is None:
        return NotReady(Reason.NO_DATA, "it is not known when the positions in Kafka were read")
    if age <= max(LEAST_POSITION_AGE, window_seconds / 4):
        return None
    message = f"positions in Kafka were not read for {age:.0f} s within the last"
    return NotReady(Reason.STALE, f"{message} {window_seconds:g} s: does Kafka answer the PEs?")


def _usable(region: Region, seen: RegionObservation) -> _Stages | NotReady:
    """Return the stages, or NotReady unless each has every partition's lag and rates."""
    if missing := _missing(region, seen):
        return missing
    for index, stage in seen.stages.items():
        lag = total_lag(stage.topics(), region.spec.max_width)
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
    return seen.stages


def _missing(region: Region, seen: RegionObservation) -> NotReady | None:
    """Return which stage or topic of the region nobody measures, if any."""
    if FIRST_STAGE not in seen.stages:
        return NotReady(Reason.NO_DATA, "the region's first stage is not measured")
    for index, wanted in enumerate(region.spec.stages):
        stage = seen.stages.get(str(index))
        lost = [topic for topic in wanted.topics if stage is None or topic not in stage.lag]
        if lost:
            message = f"the lag of {', '.join(lost)}, which stage {index} reads, is not measured"
            return NotReady(Reason.NO_DATA, message)
    return None


def _lag(region: Region, seen: RegionObservation) -> TotalLag | NotReady:
    """Return the records that wait in front of the region and between its stages."""
    if missing := _missing(region, seen):
        return missing
    topics = [topic for stage in seen.stages.values() for topic in stage.topics()]
    return total_lag(topics, region.spec.max_width)


def _change(region: Region, stages: _Stages) -> RelativeLagChange | NotReady:
    """Return Eq. 3: lag of all stages against the rate of the first."""
    rate = _value(stages[FIRST_STAGE], Input.PROCESSING_RATE)
    if isinstance(rate, NotReady):
        return rate
    total = 0.0
    for stage in stages.values():
        change = _value(stage, Input.LAG_CHANGE)
        if isinstance(change, NotReady):
            return change
        total += change
    return relative_lag_change(total, rate, overshoot=region.autoscaling.overshoot)


def _gated(
    region: Region, lag: TotalLag | NotReady, change: RelativeLagChange | NotReady
) -> GatedLagChange | NotReady:
    """Return Eq. 4 with the region's lag threshold."""
    if isinstance(lag, NotReady):
        return lag
    if isinstance(change, NotReady):
        return change
    return gated_lag_change(lag, change, region.autoscaling.lag_threshold)


def _utilization(region: Region, seen: RegionObservation) -> Utilization | NotReady:
    """Return Eq. 5 over the PEs of all stages that hold shards."""
    if Input.IDLE_SHARE not in seen.values:
        return NotReady(Reason.NO_DATA, "busy time of no PE is known")
    expected = region.width * max(len(seen.stages), 1)
    elements = int(seen.values.get(Input.ELEMENTS, 0))
    return utilization(seen.values[Input.IDLE_SHARE], elements, expected)


def _demand(
    region: Region, seen: RegionObservation, stages: _Stages, known: Known
) -> Demand | NotReady:
    """Return the channels that the load needs."""
    loads: dict[str, StageLoad] = {}
    for index, stage in stages.items():
        load = _load(region, stage, known.capacities.get(index))
        if isinstance(load, NotReady):
            return load
        loads[index] = load
    state = seen.values.get(Input.STATE_BYTES, 0.0 if region.status.asleep else None)
    if state is None:
        return NotReady(Reason.NO_DATA, "state bytes is not measured")
    around = Surroundings(
        region.width,
        known.past,
        known.trusted_forecast,
        known.neighbourhood,
        known.now - region.changed_at,
    )
    return demand(loads, policy_of(region, known, state), around)


def _load(
    region: Region, stage: StageObservation, capacity: Capacity | None
) -> StageLoad | NotReady:
    # Who sleeps runs no batches, and has no shard that would be measured.
    default = 0.0 if region.status.asleep else None
    rate, batches = _value(stage, Input.INPUT_RATE), _value(stage, Input.BATCH_RATE, default)
    largest = _value(stage, Input.LARGEST_RATE, default)
    if isinstance(rate, NotReady):
        return rate
    if isinstance(batches, NotReady):
        return batches
    if isinstance(largest, NotReady):
        return largest
    return StageLoad(
        input_rate=rate,
        lag=sum(stage.lag.values()),
        batch_seconds=region.spec.max_width / batches if batches else 0.0,
        largest_shard=min(largest / rate, 1.0) if rate > 0 else 0.0,
        capacity=capacity,
    )


def _value(stage: StageObservation, name: Input, default: float | None = None) -> float | NotReady:
    found = stage.values.get(name, default)
    if found is not None:
        return found
    return NotReady(Reason.NO_DATA, f"{name.value.replace('_', ' ')} is not measured")
