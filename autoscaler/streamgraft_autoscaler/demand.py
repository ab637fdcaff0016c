"""The demand signal: how many channels the load needs, in one step.

After DS2 (Kalavri et al., OSDI 2018): the true rate of a channel is what it would process if it
were busy all the time, so the wanted width follows from the load alone and not from the width that
runs. On top comes what it takes to work off the lag, and what arrives during a width change. What
the load needs is left for another width only where that pays (`economy`).
"""

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from streamgraft_autoscaler.capacity import TRICKLE, WARM_UP_BUSY_SECONDS, Capacity
from streamgraft_autoscaler.economy import UNKNOWN, Choice, Past, Situation, choose
from streamgraft_autoscaler.fitting import Fit, Shards, Target, fit
from streamgraft_autoscaler.forecast import BUCKET_SECONDS, Forecast
from streamgraft_autoscaler.pause import ExpectedPause
from streamgraft_autoscaler.pricing import ChangePrice
from streamgraft_autoscaler.propagation import ALONE, Neighbourhood
from streamgraft_autoscaler.readiness import NotReadyError, Reason, require_finite

MOST_PAUSE = 1.0
"""Of the catch-up time, for which channels are held ready: one long pause, as of an outage amid a
change, would ask for all of them, and no other change would follow that shows shorter ones."""
FIRST_STAGE = "0"
"""Where the records of a region come in, which its forecast is of."""
BATCHES_IN_FLIGHT = 2.0
"""Records of the running batch and of the next one are on their way, and don't wait."""


@dataclass(frozen=True, slots=True)
class StageLoad:
    """The load of one stage of a region: the PEs at one place in every channel."""

    input_rate: float
    """Arriving records/s."""
    lag: float
    """Records not yet committed."""
    batch_seconds: float = 0.0
    """Mean time from one batch of a shard to its next, 0 if unknown."""
    largest_shard: float = 0.0
    """Share of the arriving records that the fullest shard gets, 0 to 1."""
    capacity: Capacity | None = None
    """What its channels can process; None if that was never seen."""
    median_shard: float = 1.0
    """Share of the records that half of the shards get at most, 0 to 1; 1 where channels are not
    balanced by load."""

    def shards(self, count: int) -> Shards:
        """Return how its work is divided among so many shards."""
        return Shards(count, self.largest_shard, self.median_shard)


@dataclass(frozen=True, slots=True)
class DemandPolicy:
    """What the region asks for."""

    min_width: int
    """Channels."""
    max_width: int
    """Channels."""
    shards: int
    """Shards of the region."""
    target_utilization: float
    """Wanted busy share of the fullest channel, above 0 to 1."""
    headroom: float
    """Share by which the load may grow to the target once a width was chosen."""
    price: ChangePrice
    """What a width change must save."""
    catch_up_seconds: float
    """The objective: the time in which the lag is worked off."""
    pause: ExpectedPause
    """How long a width change is expected to stop a shard."""

    @property
    def target(self) -> Target:
        """Return what a width is chosen by."""
        return Target(self.target_utilization, self.headroom, self.max_width)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a demand depends on besides the load."""

    width: int
    """Channels that serve."""
    past: Past = UNKNOWN
    """The widths needed before."""
    forecast: Forecast | None = None
    """The day to come; None unless it can be trusted."""
    neighbourhood: Neighbourhood = ALONE
    """What other regions mean for this one."""
    steady_seconds: float = math.inf
    """For how long the width has been what it is."""


@dataclass(frozen=True, slots=True)
class StageDemand:
    """What one stage demands."""

    work: float
    """Records/s that channels are wanted for: the flow, and the reserve for pauses."""
    flow: float
    """Records/s to be processed, the backlog over the catch-up time included."""
    backlog: float
    """Records that have to be worked off."""
    channels: float
    """The work in channels at the target utilization."""
    busy_share: float
    """Busy share of the fullest channel at the present width."""
    fit: Fit | None
    """The widths that can do the work; None without work, or if the region sleeps and nothing is
    known of its channels."""
    load: StageLoad
    """What the demand was computed from."""
    ahead: tuple[int, ...] = ()
    """The least width for each quarter of an hour of the forecast."""
    grows_above: float = 0.0
    """Work, records/s, at which the present width is left for a wider one; 0 if it never is."""
    narrower_below: float = 0.0
    """Work, records/s, at which fewer channels would do, headroom included; 0 if they never do."""
    certain: bool = True
    """Whether enough is known of its channels to ask for another width; else it keeps the present
    one."""


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
        demands[name] = _stage_demand(name, stage, policy, surroundings, share)
    uncertain = [name for name, stage in demands.items() if not stage.certain]
    if uncertain and not any(stage.fit and stage.certain for stage in demands.values()):
        raise _unknown(uncertain[0])
    largest = max(demands, key=lambda name: _tightness(demands[name]))
    needed = max(_needed(demands[largest]), policy.min_width)
    choice = _choice(demands, needed, policy, surroundings)
    value = choice.width
    held = _held(largest, demands[largest], policy, surroundings)
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


def backlog(load: StageLoad, policy: DemandPolicy) -> float:
    """Return the records of the lag that wait for more than the batches in flight.

    Batches that take longer than the catch-up time are backlog whatever they hold.
    """
    in_flight = min(BATCHES_IN_FLIGHT * load.batch_seconds, policy.catch_up_seconds)
    return max(load.lag - max(load.input_rate, 0.0) * in_flight, 0.0)


def attainable_throughput(load: StageLoad, policy: DemandPolicy, width: int) -> float | None:
    """Return the records/s that a stage can process before it is crowded: at the best width that it
    may grow to from `width`. None if its capacity is not known."""
    capacity, shards = load.capacity, load.shards(policy.shards)
    if capacity is None:
        return None
    useful = shards.useful_widths(min(most_width(capacity, policy, width), policy.max_width))
    best = max(capacity.rate_at(each) / shards.fullest_channel(each) for each in useful)
    return best * policy.target.full


def most_width(capacity: Capacity, policy: DemandPolicy, width: int) -> int:
    """Return how wide a region may be made from `width`: less if growing was ineffective."""
    limit = capacity.limit()
    return max(limit.width, width, policy.min_width) if limit else policy.max_width


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
    in_vain = any(stage.fit and not stage.fit.enough for stage in demands.values())
    # What no useful width can do, one that is narrower than the present does even less of.
    narrowest = width if within and in_vain else least
    situation = Situation(
        present=width,
        crowded=asleep_with_work
        or not within
        or any(
            stage.certain and stage.busy_share > policy.target.full for stage in demands.values()
        ),
        least=max([narrowest, *(_least(stage) for stage in demands.values())]),
        needed=max(needed, narrowest),
        widths=(narrowest, *sorted(each for each in useful if each > narrowest)),
        price=policy.price.hours(max(past.peak, needed)),
        past=past,
        ahead=tuple(max(least, *widths) for widths in zip(*forecasts, strict=True)),
        step_hours=BUCKET_SECONDS / 3600,
        steady_seconds=surroundings.steady_seconds,
        full_share=policy.target.roomy / policy.target.full,
    )
    return choose(situation)


def _stage_demand(
    name: str, load: StageLoad, policy: DemandPolicy, surroundings: Surroundings, share: float
) -> StageDemand:
    require_finite(
        {
            f"input rate of {name}": load.input_rate,
            f"lag of {name}": load.lag,
            f"time between batches of {name}": load.batch_seconds,
            f"largest shard of {name}": load.largest_shard,
            f"median shard of {name}": load.median_shard,
        }
    )
    waiting = backlog(load, policy)
    around = surroundings.neighbourhood
    arriving = max(load.input_rate, 0.0) * around.growth
    flow = (arriving + waiting / policy.catch_up_seconds) * around.usable
    pause_share = min(policy.pause.seconds / policy.catch_up_seconds, MOST_PAUSE)
    work = flow + arriving * pause_share * around.usable
    capacity, shards = load.capacity, load.shards(policy.shards)
    trickle = capacity is not None and capacity.busy_share == TRICKLE
    narrow = surroundings.width <= 1
    if (capacity is None or (trickle and narrow)) and (work == 0 or surroundings.width == 0):
        # A region that sleeps learns nothing: one channel is the way to know more.
        return StageDemand(work, flow, waiting, float(work > 0), 0.0, None, load)
    width = min(surroundings.width, policy.shards)
    kept = min(width, policy.max_width)
    if capacity is None:
        as_it_is = Fit(kept, kept, enough=True)
        return StageDemand(work, flow, waiting, 0.0, 0.0, as_it_is, load, certain=False)
    channels = work / (capacity.true_rate * policy.target_utilization)
    require_finite({f"demand of {name}": channels})

    def busy(width: int, work: float = work) -> float:
        return work * shards.fullest_channel(width) / capacity.rate_at(width)

    forecast = surroundings.forecast
    error = forecast.error if forecast else 0.0
    fitting = fit(busy, shards, policy.target, error) if work > 0 else None
    certain = not (trickle and fitting and fitting.needed >= width)
    if not certain:
        fitting = Fit(kept, kept, enough=True)
    useful, full = shards.useful_widths(policy.max_width), policy.target.full
    ahead: tuple[int, ...] = ()
    if forecast is not None and certain:
        limits = [policy.target.planned(error) / busy(each, 1.0) for each in useful]
        ahead = tuple(
            0
            if rate * share * BUCKET_SECONDS < 1
            else useful[min(bisect_left(limits, rate * share), len(useful) - 1)]
            for rate in forecast.rates
        )
    narrower = [policy.target.roomy / busy(each, 1.0) for each in useful if each < width]
    grows = certain and 0 < width < min(useful[-1], most_width(capacity, policy, width))
    return StageDemand(
        work=work,
        flow=flow,
        backlog=waiting,
        channels=channels,
        busy_share=busy(width) if width else 0.0,
        fit=fitting,
        load=load,
        ahead=ahead,
        grows_above=full / busy(width, 1.0) if grows else 0.0,
        narrower_below=max(narrower, default=0.0),
        certain=certain,
    )


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
    if fitted and not fitted.enough and _skewed(stage, policy):
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


def _skewed(stage: StageDemand, policy: DemandPolicy) -> bool:
    """Return whether a stage that no width is enough for fails by its fullest shard: what is wider
    brings next to nothing, or would be enough if all shards got the same."""
    assert stage.load.capacity is not None
    count = policy.shards
    widest = stage.load.shards(count).useful_widths(count)[-1]
    even = stage.work / count / stage.load.capacity.rate_at(count)
    return widest <= policy.max_width and (widest < count or even <= policy.target.full)
