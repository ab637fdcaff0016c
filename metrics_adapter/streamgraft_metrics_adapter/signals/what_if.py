"""What if: the last hour of a region, replayed with another target utilization. Pure.

The load is the one that was recorded; the region is simulated, and the policy and the HPA's
algorithm are those that `streamgraft replay` runs. Bounded: MOST_STEPS steps of a simulation.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from streamgraft_autoscaler import FIRST_STAGE, Demand, NotReadyError, Reason
from streamgraft_autoscaler.hpa import spec_of
from streamgraft_autoscaler.replay import (
    LAUNCH_SECONDS,
    STEP_SECONDS,
    Experiment,
    Trace,
    replay,
    seen_model,
)
from streamgraft_common.adl import Autoscaling
from streamgraft_common.autoscaler_spec import autoscaler_spec
from streamgraft_common.resources import WidthChange
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_metrics_adapter.signals.history import Sample

SPAN_SECONDS = 3600.0
"""So much of the past is replayed at most."""
MOST_STEPS = int(SPAN_SECONDS / STEP_SECONDS)
LEAST_SECONDS = 60.0
"""Less than that is no load that says anything."""
HOLD_SECONDS = 30.0
"""A rate is taken for what it was so long after the last sample; then it is not known."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What an hour came to."""

    changes: int
    """Changes of the wanted width."""
    channel_hours: float
    """Hours of all channels, those that start included."""
    largest_backlog: float | None
    """Most records that were not committed; None if it is not known at any time."""


@dataclass(frozen=True, slots=True)
class Step:
    """A moment of the replay."""

    time: float
    """Unix time."""
    width: int
    """Channels that serve."""
    wanted_width: int
    """Channels."""
    lag: float
    """Records not committed."""
    wait_seconds: float
    """Seconds that a record waits which arrives now."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What another target would have come to, beside what really happened."""

    target_utilization: float
    seconds: float
    """How much of the past counts, in seconds: times without a known rate do not."""
    steps: Sequence[Step]
    """Oldest first, without the times that do not count."""
    replayed: Figures
    happened: Figures
    longest_wait_seconds: float
    """Of the replay, seconds. How long records really waited is not recorded."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """One step of the recorded load."""

    begins: float
    """Unix time."""
    rate: float
    """Records/s."""
    known: bool
    """Whether the rate is; else it is the one before."""
    sample: Sample
    """The last one until its end."""


def what_if(
    samples: Sequence[Sample],
    demand: Demand,
    settings: Autoscaling,
    changes: Sequence[WidthChange],
    target_utilization: float,
) -> WhatIf:
    """Return the last hour of `samples` (oldest first) as another target would have made it.

    `demand`: the present one, which knows the capacity, the price and the pause of a change;
    `changes`: the region's past ones, which show how long channels take to start.
    Raises NotReadyError if less than LEAST_SECONDS of rates or no capacity is known.
    """
    slots = _slots(samples)
    seconds = sum(slot.known for slot in slots) * STEP_SECONDS
    if seconds < LEAST_SECONDS:
        message = (
            f"rates of {seconds:g} s of the last hour are known; a replay needs {LEAST_SECONDS:g} s"
        )
        raise NotReadyError(Reason.NO_DATA, message)
    begin, width = slots[0].begins, max(slots[0].sample.wanted_width, 1)
    tried = settings.model_copy(update={"target_utilization": target_utilization, "mode": "scale"})
    found = replay(_experiment(slots, demand, tried, changes), width)
    counted = [sample for sample, slot in zip(found.samples, slots, strict=True) if slot.known]
    steps = [
        Step(begin + each.seconds, each.serving, each.wanted, each.lag, each.delay)
        for each in counted
    ]
    known = [slot.sample for slot in slots if slot.known]
    return WhatIf(
        target_utilization=target_utilization,
        seconds=seconds,
        steps=steps,
        replayed=Figures(
            changes=_changes([width, *(each.wanted for each in counted)]),
            channel_hours=_hours(each.pods for each in counted),
            largest_backlog=max(each.lag for each in counted),
        ),
        happened=Figures(
            changes=_changes([sample.wanted_width for sample in known]),
            channel_hours=_hours(max(each.width, each.wanted_width) for each in known),
            largest_backlog=_largest_backlog(samples, begin),
        ),
        longest_wait_seconds=max(each.delay for each in counted),
    )


def _slots(samples: Sequence[Sample]) -> list[_Slot]:
    """Return the load in steps of STEP_SECONDS, from the first known rate of the last hour on."""
    newest = samples[-1].time if samples else 0.0
    recent = [sample for sample in samples if newest - sample.time < SPAN_SECONDS]
    first = next((i for i, sample in enumerate(recent) if sample.input_rate is not None), None)
    if first is None:
        return []
    begin = recent[first].time
    inside: dict[int, list[Sample]] = {}
    for sample in recent[first:]:
        inside.setdefault(int((sample.time - begin) / STEP_SECONDS), []).append(sample)
    slots: list[_Slot] = []
    rate, last = 0.0, recent[first]
    for index in range(min(max(inside) + 1, MOST_STEPS)):
        here = inside.get(index, [])
        rates = [sample.input_rate for sample in here if sample.input_rate is not None]
        last = here[-1] if here else last
        begins = begin + index * STEP_SECONDS
        held = last.input_rate is not None and begins - last.time <= HOLD_SECONDS
        known = bool(rates) if here else held
        rate = max(statistics.fmean(rates), 0.0) if rates else rate
        slots.append(_Slot(begins, rate, known, last))
    return slots


def _experiment(
    slots: Sequence[_Slot],
    demand: Demand,
    settings: Autoscaling,
    changes: Sequence[WidthChange],
) -> Experiment:
    spec = autoscaler_spec(settings, demand.policy.shards, {})
    return Experiment(
        trace=Trace("the last hour", STEP_SECONDS, tuple(slot.rate for slot in slots)),
        model=seen_model(demand, FIRST_STAGE, launch_seconds(changes)),
        autoscaler=spec_of({"spec": spec}),
        policy=replace(demand.policy, target_utilization=settings.target_utilization),
        objective_seconds=demand.policy.catch_up_seconds,
        lag_threshold=settings.lag_threshold,
        overshoot=settings.overshoot,
    )


def launch_seconds(changes: Sequence[WidthChange]) -> float:
    """Return how long new channels took until all could serve; the median of what is known."""
    took = [
        max(from_rfc3339(change.decided_at) - from_rfc3339(change.began_at), 0.0)
        for change in changes
        if change.decided_at and change.to_width > change.from_width and not change.failure
    ]
    return statistics.median(took) if took else LAUNCH_SECONDS


def _changes(widths: Sequence[int]) -> int:
    return sum(after != before for before, after in pairwise(widths))


def _hours(channels: Iterable[int]) -> float:
    return sum(channels) * STEP_SECONDS / 3600


def _largest_backlog(samples: Sequence[Sample], begin: float) -> float | None:
    """Return the most records not committed since a Unix time; the lag has no value amid a width
    change."""
    lags = (sample.signals.get("total_lag") for sample in samples if sample.time >= begin)
    return max((lag for lag in lags if lag is not None), default=None)
