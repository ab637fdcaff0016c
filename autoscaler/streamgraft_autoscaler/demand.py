"""The demand signal: how many channels the load needs, in one step.

After DS2 (Kalavri et al., OSDI 2018): the true rate of a channel is what it would process if it
were busy all the time, so the wanted width follows from the load alone and not from the width that
runs. On top comes what it takes to work off the lag, and what arrives during a width change.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from streamgraft_autoscaler.capacity import WARM_UP_BUSY_SECONDS, Capacity
from streamgraft_autoscaler.fitting import Fit, Shards, Target, fit
from streamgraft_autoscaler.pause import ExpectedPause
from streamgraft_autoscaler.propagation import ALONE, Neighbourhood
from streamgraft_autoscaler.readiness import NotReady, Reason, not_finite

SKEWED = 2.0
"""A shard that gets so many times its even share is named as the reason, not the width."""
BATCHES_IN_FLIGHT = 2.0
"""Records of the running batch and of the next one are on their way, and don't wait."""


@dataclass(frozen=True, slots=True)
class StageLoad:
    """What one stage of a region (the PEs at one place in every channel) has to do, and can.

    `input_rate`: arriving records/s; `lag`: records not yet committed; `batch_seconds`: mean time
    from one batch of a shard to its next, 0 if unknown; `largest_shard`: share of the arriving
    records that the fullest shard gets; `capacity`: None if it was never seen.
    """

    input_rate: float
    lag: float
    batch_seconds: float = 0.0
    largest_shard: float = 0.0
    capacity: Capacity | None = None


@dataclass(frozen=True, slots=True)
class DemandPolicy:
    """What the region asks for.

    `shards`: how many it has; `target_utilization`: wanted busy share, above 0 to 1; `headroom`:
    share by which the load may grow before the next width change; `catch_up_seconds`: the
    objective, the time in which to work off the lag; `pause`: how long a width change is expected
    to stop a shard.
    """

    min_width: int
    max_width: int
    shards: int
    target_utilization: float
    headroom: float
    catch_up_seconds: float
    pause: ExpectedPause


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`width`: channels that serve; `forecast_rate`: records/s to be prepared for, None without a
    forecast that can be trusted; `neighbourhood`: what other regions mean for this one."""

    width: int
    forecast_rate: float | None = None
    neighbourhood: Neighbourhood = ALONE


@dataclass(frozen=True, slots=True)
class StageDemand:
    """`work`: records/s to be processed, of which `backlog` (records) has to be worked off;
    `channels`: what that makes in channels at the target utilization; `busy_share`: of the fullest
    channel at the present width; `fit`: the width that can do it, None if there is no work."""

    work: float
    backlog: float
    channels: float
    busy_share: float
    fit: Fit | None
    load: StageLoad


@dataclass(frozen=True, slots=True)
class Demand:
    """`value`: channels wanted, within the policy's limits; `stage`: the one that needs most;
    `held`: why it is not what the load alone would ask for, one sentence each."""

    value: float
    stage: str
    stages: Mapping[str, StageDemand]
    policy: DemandPolicy
    surroundings: Surroundings
    held: tuple[str, ...]


def demand(
    stages: Mapping[str, StageLoad], policy: DemandPolicy, surroundings: Surroundings
) -> Demand | NotReady:
    """Return the channels that the load needs: the largest demand of the region's stages.

    work = input rate + lag / catch-up + input rate x pause / catch-up, and the fullest channel's
    share of it must be within its true rate x target utilization.
    """
    if not stages:
        return NotReady(Reason.NO_DATA, "no stage of the region was measured")
    demands: dict[str, StageDemand] = {}
    for name, stage in stages.items():
        result = _stage_demand(name, stage, policy, surroundings)
        if isinstance(result, NotReady):
            return result
        demands[name] = result
    largest = max(demands, key=lambda name: (_width(demands[name]), demands[name].channels))
    value = max(_width(demands[largest]), policy.min_width)
    held = _held(demands[largest], policy, surroundings)
    if value > surroundings.width and _ineffective(demands[largest].load):
        value = max(surroundings.width, policy.min_width)
        held += (
            f"growing to {surroundings.width} channels brought next to nothing: something else"
            " than the channels is the bottleneck, so the region is not widened further",
        )
    return Demand(float(value), largest, demands, policy, surroundings, held)


def backlog(load: StageLoad, policy: DemandPolicy) -> float:
    """Return the records of the lag that wait for more than the batches in flight.

    Batches that take longer than the catch-up time are backlog whatever they hold.
    """
    in_flight = min(BATCHES_IN_FLIGHT * load.batch_seconds, policy.catch_up_seconds)
    return max(load.lag - max(load.input_rate, 0.0) * in_flight, 0.0)


def _stage_demand(
    name: str, load: StageLoad, policy: DemandPolicy, surroundings: Surroundings
) -> StageDemand | NotReady:
    trouble = not_finite(
        {
            f"input rate of {name}": load.input_rate,
            f"lag of {name}": load.lag,
            f"time between batches of {name}": load.batch_seconds,
            f"largest shard of {name}": load.largest_shard,
        }
    )
    if trouble:
        return trouble
    waiting = backlog(load, policy)
    work = _work(load, waiting, policy, surroundings)
    if work == 0:
        return StageDemand(work, waiting, 0.0, 0.0, None, load)
    if load.capacity is None:
        message = (
            f"stage {name}: what a channel can process is not known yet; that takes a window with"
            f" some load, after its PEs were busy for {WARM_UP_BUSY_SECONDS:g} s"
        )
        return NotReady(Reason.WARMING_UP, message)
    channels = work / (load.capacity.true_rate * policy.target_utilization)
    if trouble := not_finite({f"demand of {name}": channels}):
        return trouble
    capacity, shards = load.capacity, Shards(policy.shards, load.largest_shard)

    def busy(width: int) -> float:
        return work * shards.fullest_channel(width) / capacity.rate_at(width)

    width = min(surroundings.width, policy.shards)
    target = Target(policy.target_utilization, policy.headroom, policy.max_width)
    fitting = fit(busy, shards, width, target)
    return StageDemand(work, waiting, channels, busy(width), fitting, load)


def _work(
    load: StageLoad, waiting: float, policy: DemandPolicy, surroundings: Surroundings
) -> float:
    around = surroundings.neighbourhood
    arriving = max(load.input_rate, 0.0) * around.growth
    arriving = max(arriving, surroundings.forecast_rate or 0.0)
    pause_share = policy.pause.seconds / policy.catch_up_seconds
    return (arriving * (1.0 + pause_share) + waiting / policy.catch_up_seconds) * around.usable


def _width(stage: StageDemand) -> int:
    return stage.fit.width if stage.fit else 0


def _ineffective(load: StageLoad) -> bool:
    return load.capacity is not None and load.capacity.ineffective()


def _held(stage: StageDemand, policy: DemandPolicy, surroundings: Surroundings) -> tuple[str, ...]:
    """Return why the value is not what the load alone would ask for."""
    held: list[str] = []
    around, fitted = surroundings.neighbourhood, stage.fit
    if around.bottleneck:
        held.append(
            f"region {around.bottleneck} is at its largest width and takes no more than"
            f" {around.usable:.0%} of what this one could send"
        )
    if fitted is None or fitted.width < policy.min_width:
        held.append(f"less would do, but the smallest width is {policy.min_width}")
    if fitted and fitted.kept and fitted.width == surroundings.width:
        held.append(f"width {fitted.width} is kept: its fullest channel is within the tolerance")
    if fitted and not fitted.enough and stage.load.largest_shard * policy.shards > SKEWED:
        held.append(
            f"width can't help: the fullest of {policy.shards} shards gets"
            f" {stage.load.largest_shard:.0%} of the records, and a shard can't be divided"
        )
    elif fitted and not fitted.enough:
        held.append(
            f"{stage.channels:.3g} channels' worth of work, but the largest width is"
            f" {policy.max_width}"
        )
    return tuple(held)
