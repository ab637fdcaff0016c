"""What one stage of a region demands: the PEs at one place in every channel."""

import math
from bisect import bisect_left
from dataclasses import dataclass

from streamgraft_autoscaler.capacity import TRICKLE, Capacity
from streamgraft_autoscaler.economy import UNKNOWN, Past
from streamgraft_autoscaler.fitting import Fit, Shards, Target, fit
from streamgraft_autoscaler.forecast import BUCKET_SECONDS, Forecast
from streamgraft_autoscaler.pause import ExpectedPause
from streamgraft_autoscaler.pricing import ChangePrice
from streamgraft_autoscaler.propagation import ALONE, Neighbourhood
from streamgraft_autoscaler.readiness import require_finite

MOST_PAUSE = 1.0
"""Of the catch-up time, for which channels are held ready: one long pause, as of an outage amid a
change, would ask for all of them, and no other change would follow that shows shorter ones."""
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

    @property
    def in_vain(self) -> bool:
        """Return whether no width is enough for it."""
        return self.fit is not None and not self.fit.enough


def stage_demand(
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
        return busy_share(load, policy, width, work)

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


def busy_share(load: StageLoad, policy: DemandPolicy, width: int, work: float) -> float:
    """Return the busy share of the fullest of `width` channels; the capacity must be known."""
    assert load.capacity is not None
    return work * load.shards(policy.shards).fullest_channel(width) / load.capacity.rate_at(width)


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
