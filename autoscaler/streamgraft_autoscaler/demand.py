"""The demand signal: how many channels the load needs, in one step.

After DS2 (Kalavri et al., OSDI 2018): the true rate of a channel is what it would process if it
were busy all the time, so the wanted width follows from the load alone and not from the width that
runs. On top comes what it takes to work off the lag, and what arrives during a width change. What
the load needs is left for another width only where that pays (`economy`).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streamgraft_autoscaler.capacity import WARM_UP_BUSY_SECONDS
from streamgraft_autoscaler.economy import Choice, Situation, choose
from streamgraft_autoscaler.fitting import ROUNDING
from streamgraft_autoscaler.forecast import BUCKET_SECONDS
from streamgraft_autoscaler.readiness import NotReadyError, Reason
from streamgraft_autoscaler.stage import (
    DemandPolicy,
    StageDemand,
    StageLoad,
    Surroundings,
    busy_share,
    most_width,
    stage_demand,
)

FIRST_STAGE = "0"
"""Where the records of a region come in, which its forecast is of."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The width that a region should have, and why."""

    value: float
    """Channels wanted, within the policy's limits."""
    needed: int
    """Channels that the load needs now, headroom included."""
    stage: str
    """The stage that needs most."""
    stages: Mapping[str, StageDemand]
    """The demand of each stage, by name."""
    policy: DemandPolicy
    """What the region asks for."""
    surroundings: Surroundings
    """What else it depends on."""
    held: tuple[str, ...]
    """Why the value is not what the load alone would ask for, one sentence each."""


def demand(
    stages: Mapping[str, StageLoad], policy: DemandPolicy, surroundings: Surroundings
) -> Demand:
    """Return the channels that the load needs: the largest demand of the region's stages, whose
    names are their numbers.

    work = input rate + lag / catch-up + input rate x pause / catch-up (MOST_PAUSE at most), and the
    fullest channel's share of it must be within its true rate x target utilization. NotReadyError
    without the first stage, where a stage's load is not known, or no capacity of those with work.
    """
    if FIRST_STAGE not in stages:
        raise NotReadyError(Reason.NO_DATA, "the region's first stage is not measured")
    first = stages[FIRST_STAGE].input_rate
    demands: dict[str, StageDemand] = {}
    for name, stage in sorted(stages.items()):
        share = stage.input_rate / first if first > 0 else 1.0
        demands[name] = stage_demand(name, stage, policy, surroundings, share)
    uncertain = [name for name, stage in demands.items() if not stage.certain]
    if uncertain and not any(stage.fit and stage.certain for stage in demands.values()):
        raise _unknown(uncertain[0])
    largest = max(demands, key=lambda name: _tightness(demands[name]))
    needed = max(_needed(demands[largest]), policy.min_width)
    choice = _choice(demands, needed, policy, surroundings)
    value = choice.width
    held = _held(largest, demands[largest], policy, surroundings)
    held += tuple(
        (f"stage {name}: " if len(demands) > 1 else "") + _why_in_vain(stage, policy)
        for name, stage in demands.items()
        if stage.in_vain
    )
    held += (choice.reason,) if choice.reason else ()
    capacity = demands[largest].load.capacity
    if capacity and (limit := capacity.limit()):
        most = most_width(capacity, policy, surroundings.width)
        if value > most:
            value = most
            then = (
                f"for another {math.ceil(limit.retry_in / 60)} min"
                if limit.retry_in
                else f"beyond {most}, which is tried now"
            )
            held += (
                f"growing to {capacity.width} channels brought next to nothing: something else"
                f" than the channels is the bottleneck, so the region is not widened {then}",
            )
    return Demand(float(value), needed, largest, demands, policy, surroundings, held)


def _choice(
    demands: Mapping[str, StageDemand],
    needed: int,
    policy: DemandPolicy,
    surroundings: Surroundings,
) -> Choice:
    width, past, least = surroundings.width, surroundings.past, policy.min_width
    useful = {
        each
        for stage in demands.values()
        for each in stage.load.shards(policy.shards).useful_widths(policy.max_width)
    }
    forecasts = [stage.ahead for stage in demands.values() if stage.ahead]
    asleep_with_work = width == 0 < needed
    within = least <= width <= policy.max_width
    narrowest = _narrowest(demands, useful, policy, width) if within else least
    least_width = max([narrowest, *(_least(stage) for stage in demands.values())])
    needed = max(needed, narrowest)
    # What a stage of which nothing is known keeps may be no width that is useful.
    wider = {each for each in (*useful, least_width, needed) if each > narrowest}
    situation = Situation(
        present=width,
        crowded=asleep_with_work
        or not within
        or any(_crowded(stage, policy, width) for stage in demands.values()),
        least=least_width,
        needed=needed,
        widths=(narrowest, *sorted(wider)),
        price=policy.price.hours(max(past.peak, needed)),
        past=past,
        ahead=tuple(max(least, *widths) for widths in zip(*forecasts, strict=True)),
        step_hours=BUCKET_SECONDS / 3600,
        steady_seconds=surroundings.steady_seconds,
        full_share=policy.target.roomy / policy.target.full,
    )
    return choose(situation)


def _narrowest(
    demands: Mapping[str, StageDemand], useful: Iterable[int], policy: DemandPolicy, width: int
) -> int:
    """Return the least width to choose from. What no width can do, some do even less of: a stage
    that is in vain keeps the present `width`, or a narrower one at which it is no busier."""
    in_vain = [stage for stage in demands.values() if stage.in_vain]
    if not in_vain:
        return policy.min_width
    least = max(policy.min_width, 1)
    alike = (
        each
        for each in sorted({least, *useful})
        if least <= each < width
        and all(
            busy_share(stage.load, policy, each, stage.work) <= stage.busy_share + ROUNDING
            for stage in in_vain
        )
    )
    return next(alike, width)


def _crowded(stage: StageDemand, policy: DemandPolicy, width: int) -> bool:
    """Return whether a stage's fullest channel can't take more, and another width may help."""
    helpless = stage.in_vain and stage.fit and width >= stage.fit.needed
    return stage.certain and not helpless and stage.busy_share > policy.target.full


def _unknown(name: str) -> NotReadyError:
    message = (
        f"stage {name}: what a channel can process is not known yet; that takes a window with"
        f" some load, after its PEs were busy for {WARM_UP_BUSY_SECONDS:g} s"
    )
    return NotReadyError(Reason.WARMING_UP, message)


def _tightness(stage: StageDemand) -> tuple[int, bool, float]:
    return _needed(stage), stage.certain, stage.channels


def _needed(stage: StageDemand) -> int:
    return stage.fit.needed if stage.fit else math.ceil(stage.channels)


def _least(stage: StageDemand) -> int:
    return stage.fit.least if stage.fit else math.ceil(stage.channels)


def _held(
    name: str, stage: StageDemand, policy: DemandPolicy, surroundings: Surroundings
) -> tuple[str, ...]:
    """Return why a stage's need is not what its load alone would ask for."""
    held: list[str] = []
    around, fitted = surroundings.neighbourhood, stage.fit
    if around.bottleneck:
        held.append(
            f"region {around.bottleneck} takes no more than {around.usable:.0%} of what this one"
            " could send, however wide it is made"
        )
    if _needed(stage) < policy.min_width:
        held.append(f"less would do, but the smallest width is {policy.min_width}")
    if not stage.certain and _needed(stage) > policy.min_width:
        held.append(
            f"width {surroundings.width} is kept: what a channel can process of stage {name} is not"
            " known yet"
        )
    kept = stage.busy_share <= policy.target.full
    if fitted and 0 < surroundings.width < fitted.needed and kept:
        held.append(
            f"width {surroundings.width} is kept: its fullest channel is at most"
            f" {policy.target.full:.0%} busy"
        )
    return tuple(held)


def _why_in_vain(stage: StageDemand, policy: DemandPolicy) -> str:
    if _skewed(stage, policy):
        return (
            f"width can't help: the fullest of {policy.shards} shards gets"
            f" {stage.load.largest_shard:.0%} of the records, and a shard can't be divided"
        )
    return (
        f"{stage.channels:.3g} channels' worth of work, but the largest width is {policy.max_width}"
    )


def _skewed(stage: StageDemand, policy: DemandPolicy) -> bool:
    """Return whether a stage that no width is enough for fails by its fullest shard: what is wider
    brings next to nothing, or would be enough if all shards got the same."""
    assert stage.load.capacity is not None
    count = policy.shards
    widest = stage.load.shards(count).useful_widths(count)[-1]
    even = stage.work / count / stage.load.capacity.rate_at(count)
    return widest <= policy.max_width and (widest < count or even <= policy.target.full)
