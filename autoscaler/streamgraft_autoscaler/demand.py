"""The demand signal: how many channels the load needs, in one step.

After DS2 (Kalavri et al., OSDI 2018): the true rate of a channel is what it would process if it
were busy all the time, so the wanted width follows from the load alone and not from the width that
runs. On top comes what it takes to work off the lag, and what arrives during a width change.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from streamgraft_autoscaler.capacity import WARM_UP_BUSY_SECONDS, Capacity
from streamgraft_autoscaler.readiness import NotReady, Reason, not_finite

BATCHES_IN_FLIGHT = 2.0
"""Records of the running batch and of the next one are on their way, and don't wait."""


@dataclass(frozen=True, slots=True)
class StageLoad:
    """What one stage of a region (the PEs at one place in every channel) has to do, and can.

    `input_rate`: arriving records/s; `lag`: records not yet committed; `batch_seconds`: mean time
    from one batch of a shard to its next, 0 if unknown; `capacity`: None if it was never seen.
    """

    input_rate: float
    lag: float
    batch_seconds: float = 0.0
    capacity: Capacity | None = None


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
    """`channels` before clamping; `work`: records/s to be processed, of which `backlog` (records)
    has to be worked off."""

    channels: float
    work: float
    backlog: float
    load: StageLoad


@dataclass(frozen=True, slots=True)
class Demand:
    """`value`: channels wanted, not rounded, within the policy's limits; `stage`: the one that
    needs most; `stages`: all of them."""

    value: float
    stage: str
    stages: Mapping[str, StageDemand]
    policy: DemandPolicy


def demand(stages: Mapping[str, StageLoad], policy: DemandPolicy) -> Demand | NotReady:
    """Return the channels that the load needs: the largest demand of the region's stages.

    (input rate + lag / catch-up + input rate x pause / catch-up) / (true rate x target utilization)
    """
    if not stages:
        return NotReady(Reason.NO_DATA, "no stage of the region was measured")
    demands: dict[str, StageDemand] = {}
    for name, stage in stages.items():
        result = _stage_demand(name, stage, policy)
        if isinstance(result, NotReady):
            return result
        demands[name] = result
    largest = max(demands, key=lambda name: demands[name].channels)
    value = min(max(demands[largest].channels, policy.min_width), policy.max_width)
    return Demand(float(value), largest, demands, policy)


def backlog(load: StageLoad, policy: DemandPolicy) -> float:
    """Return the records of the lag that wait for more than the batches in flight.

    Batches that take longer than the catch-up time are backlog whatever they hold.
    """
    in_flight = min(BATCHES_IN_FLIGHT * load.batch_seconds, policy.catch_up_seconds)
    return max(load.lag - max(load.input_rate, 0.0) * in_flight, 0.0)


def _stage_demand(name: str, load: StageLoad, policy: DemandPolicy) -> StageDemand | NotReady:
    trouble = not_finite(
        {
            f"input rate of {name}": load.input_rate,
            f"lag of {name}": load.lag,
            f"time between batches of {name}": load.batch_seconds,
        }
    )
    if trouble:
        return trouble
    waiting = backlog(load, policy)
    pause_share = policy.expected_pause_seconds / policy.catch_up_seconds
    work = max(load.input_rate, 0.0) * (1.0 + pause_share) + waiting / policy.catch_up_seconds
    if work == 0:
        return StageDemand(0.0, work, waiting, load)
    if load.capacity is None:
        message = (
            f"{name}: what a channel can process is not known yet; that takes a window with some"
            f" load, after its PEs were busy for {WARM_UP_BUSY_SECONDS:g} s"
        )
        return NotReady(Reason.WARMING_UP, message)
    channels = work / (load.capacity.true_rate * policy.target_utilization)
    if trouble := not_finite({f"demand of {name}": channels}):
        return trouble
    return StageDemand(channels, work, waiting, load)
