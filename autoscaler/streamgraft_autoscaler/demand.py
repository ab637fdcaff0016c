"""The demand signal: how many channels the load needs, in one step.

After DS2 (Kalavri et al., OSDI 2018): the true rate of a channel is what it would process if it
were busy all the time, so the wanted width follows from the load alone and not from the width that
runs. On top comes what it takes to work off the lag, and what arrives during a width change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamgraft_autoscaler.readiness import NotReady, Reason, not_finite

MEASURABLE_BUSY_SHARE = 0.02
"""Below this mean busy share of a channel, overheads outweigh the work and say nothing of it."""


@dataclass(frozen=True, slots=True)
class StageLoad:
    """What one stage of a region (the PEs at one place in every channel) has to do, and did.

    `input_rate`: arriving records/s; `lag`: records waiting; `processing_rate`: records/s that all
    channels processed; `busy_channels`: busy time of all channels per second, so 1.5 means one and
    a half channels' worth of work; `last_true_rate`: the true rate as last measured, records/s.
    """

    input_rate: float
    lag: float
    processing_rate: float
    busy_channels: float
    last_true_rate: float | None = None


@dataclass(frozen=True, slots=True)
class RegionLoad:
    """Stages by name, and the width (channels) that served them."""

    stages: Mapping[str, StageLoad]
    width: int


@dataclass(frozen=True, slots=True)
class DemandPolicy:
    """What the region asks for.

    `target_utilization`: wanted busy share, above 0 to 1; `catch_up_seconds`: time in which to work
    off the lag; `expected_pause_seconds`: how long a width change stops a shard.
    """

    min_width: int
    max_width: int
    target_utilization: float
    catch_up_seconds: float
    expected_pause_seconds: float


@dataclass(frozen=True, slots=True)
class StageDemand:
    """`channels` before clamping; `work`: records/s to be processed; `true_rate`: records/s of one
    busy channel, None if the stage has no work; `measured`: it comes from this window."""

    channels: float
    work: float
    true_rate: float | None
    measured: bool
    load: StageLoad


@dataclass(frozen=True, slots=True)
class Demand:
    """`value`: channels wanted, not rounded, within the policy's limits; `stage`: the one that
    needs most; `stages`: all of them."""

    value: float
    stage: str
    stages: Mapping[str, StageDemand]
    policy: DemandPolicy


def true_rate(load: StageLoad, width: int) -> float | None:
    """Return the records/s of a channel that is busy all the time; None if not measurable."""
    if width < 1 or load.busy_channels < MEASURABLE_BUSY_SHARE * width:
        return None
    rate = load.processing_rate / load.busy_channels
    return rate if rate > 0 else None


def demand(load: RegionLoad, policy: DemandPolicy) -> Demand | NotReady:
    """Return the channels that the load needs: the largest demand of the region's stages.

    (input rate + lag / catch-up + input rate x pause / catch-up) / (true rate x target utilization)
    """
    if not load.stages:
        return NotReady(Reason.NO_DATA, "no stage of the region was measured")
    stages: dict[str, StageDemand] = {}
    for name, stage in load.stages.items():
        result = _stage_demand(name, stage, load.width, policy)
        if isinstance(result, NotReady):
            return result
        stages[name] = result
    largest = max(stages, key=lambda name: stages[name].channels)
    value = min(max(stages[largest].channels, policy.min_width), policy.max_width)
    return Demand(float(value), largest, stages, policy)


def _stage_demand(
    name: str, load: StageLoad, width: int, policy: DemandPolicy
) -> StageDemand | NotReady:
    trouble = not_finite(
        {
            f"input rate of {name}": load.input_rate,
            f"lag of {name}": load.lag,
            f"processing rate of {name}": load.processing_rate,
            f"busy time of {name}": load.busy_channels,
        }
    )
    if trouble:
        return trouble
    arriving, waiting = max(load.input_rate, 0.0), max(load.lag, 0.0)
    pause_share = policy.expected_pause_seconds / policy.catch_up_seconds
    work = arriving * (1.0 + pause_share) + waiting / policy.catch_up_seconds
    measured = true_rate(load, width)
    rate = measured if measured is not None else load.last_true_rate
    if work == 0:
        return StageDemand(0.0, work, rate, measured is not None, load)
    if rate is None or rate <= 0:
        message = (
            f"{name}: busy for {load.busy_channels:.3g} of {width} channels, too little to tell"
            " what a channel can process, and there is no earlier figure"
        )
        return NotReady(Reason.NO_DATA, message)
    channels = work / (rate * policy.target_utilization)
    if trouble := not_finite({f"demand of {name}": channels}):
        return trouble
    return StageDemand(channels, work, rate, measured is not None, load)


def true_rates(load: RegionLoad) -> Sequence[tuple[str, float]]:
    """Return (stage, true rate) of the stages whose true rate this window shows."""
    rates = ((name, true_rate(stage, load.width)) for name, stage in load.stages.items())
    return [(name, rate) for name, rate in rates if rate is not None]
