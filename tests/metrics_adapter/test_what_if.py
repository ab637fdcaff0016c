"""The replay of a region's last hour: by the policy and the HPA's algorithm, within bounds."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from streamgraft_autoscaler import (
    Capacity,
    Demand,
    DemandPolicy,
    NotReadyError,
    Reason,
    StageLoad,
    Surroundings,
    demand,
)
from streamgraft_autoscaler.pause import ExpectedPause
from streamgraft_autoscaler.pricing import ChangePrice
from streamgraft_autoscaler.replay import seen_model
from streamgraft_common.adl import Autoscaling
from streamgraft_common.resources import PARALLEL_REGION, WidthChange
from streamgraft_metrics_adapter.api.routes.answers import region_answer
from streamgraft_metrics_adapter.regions import region_of
from streamgraft_metrics_adapter.signals.history import Sample
from streamgraft_metrics_adapter.signals.provider import Reading
from streamgraft_metrics_adapter.signals.what_if import (
    MOST_STEPS,
    WhatIf,
    launch_seconds,
    what_if,
)

BEGIN = 1_000_000.0
POLICY = DemandPolicy(
    min_width=1,
    max_width=24,
    shards=24,
    target_utilization=0.8,
    headroom=0.25,
    price=ChangePrice(40.0, "given"),
    catch_up_seconds=60.0,
    pause=ExpectedPause(1.0, 1.0, 0.0, 1),
)
GROWN = WidthChange(
    from_width=1,
    to_width=2,
    epoch=2,
    requested_at="2026-01-01T00:00:00Z",
    decided_at="2026-01-01T00:03:00Z",
)


def capacity(rate: float, width: int = 8, loss: float = 0.0) -> Capacity:
    """Return what a channel was seen to do."""
    return Capacity(rate, width, 0.5, BEGIN, {width: rate}, loss, loss)


def load(rate: float, seen: Capacity | None) -> StageLoad:
    """Return the load of a stage."""
    return StageLoad(rate, 0.0, batch_seconds=2.0, largest_shard=1 / 24, capacity=seen)


def now(*stages: StageLoad) -> Demand:
    """Return the present demand of a region of eight channels."""
    loads = {str(index): stage for index, stage in enumerate(stages)}
    return demand(loads, POLICY, Surroundings(8))


def hour(rate: Callable[[float], float | None], lag: float | None = 5.0) -> list[Sample]:
    """Return an hour of eight channels; `rate`: records/s by seconds."""
    return [
        Sample(BEGIN + at, 8, 8, rate(at), rate(at), {"total_lag": lag})
        for at in range(0, 3600, 10)
    ]


def tried(samples: list[Sample], target: float, **settings: Any) -> WhatIf:
    """Return a replay with channels that do 200 records/s."""
    around = now(load(1000, capacity(200)))
    return what_if(samples, around, Autoscaling(**settings), [], target)


def test_another_target_gives_other_widths() -> None:
    """Those that the policy asks for: it keeps a width that is not crowded, and leaves headroom."""
    samples = hour(lambda at: 1000 if at < 1800 else 400)
    high, low = tried(samples, 0.8), tried(samples, 0.2)
    before = [
        [step.wanted_width for step in found.steps if step.time < BEGIN + 1800][-1]
        for found in (high, low)
    ]
    # By shares alone five channels' worth of work would take 7 channels at 0.8, and 24 at 0.2.
    assert before == [8, 8]
    assert (high.steps[-1].wanted_width, low.steps[-1].wanted_width) == (4, 8)
    assert (high.replayed.changes, low.replayed.changes) == (2, 0)
    assert high.steps[0].time == low.steps[0].time == BEGIN + 15
    assert high.replayed.channel_hours < low.replayed.channel_hours == pytest.approx(8)


def test_growth_is_by_the_policy_and_takes_the_time_of_a_start() -> None:
    samples = hour(lambda at: 600 if at < 1800 else 1600)
    for target, width in ((0.9, 12), (0.6, 24)):
        found = tried(samples, target)
        wanted = demand(
            {"0": load(1600, capacity(200))},
            DemandPolicy(**{**fields(POLICY), "target_utilization": target}),
            Surroundings(8),
        )
        assert found.steps[-1].wanted_width == width == wanted.value
    slow = what_if(samples, now(load(600, capacity(200))), Autoscaling(), [GROWN], 0.9)
    late = {"requested_at": "2026-01-01T00:02:50Z", "since": GROWN.requested_at}
    assert launch_seconds([GROWN]) == launch_seconds([GROWN.model_copy(update=late)]) == 180
    quick = tried(samples, 0.9)
    assert slow.longest_wait_seconds > quick.longest_wait_seconds > 1
    assert (slow.replayed.largest_backlog or 0) > (quick.replayed.largest_backlog or 0) > 0


def fields(policy: DemandPolicy) -> dict[str, Any]:
    """Return the fields of a policy."""
    return {name: getattr(policy, name) for name in DemandPolicy.__slots__}


def test_the_settings_of_the_region_are_those_of_the_replay() -> None:
    """Also of a region that is only advised: it is asked what would be."""
    samples = hour(lambda at: 600 if at < 1800 else 1600)
    assert tried(samples, 0.6, mode="advise").steps[-1].wanted_width == 24
    assert tried(samples, 0.6, max_width=10).steps[-1].wanted_width == 10


def test_rest_tells_what_to_simulate_a_region_by() -> None:
    """Its tightest stage, in records of the region, and how long its channels took to start."""
    spec = {"job": "j", "region": "r", "width": 8, "maxWidth": 24, "key": ["k"]}
    status = {"width": 8, "changes": [GROWN.to_wire()]}
    region = region_of({**PARALLEL_REGION.manifest("j-r", "ns", spec), "status": status})
    around = now(load(1000, capacity(200)), load(1000, capacity(50)))
    told = region_answer(region, [Reading(region, "demand", around, None)]).model
    assert told
    assert (told.true_rate, told.launch_seconds, told.pause_seconds) == (50, 180, 1)
    unknown = now(load(0, None))
    assert region_answer(region, [Reading(region, "demand", unknown, None)]).model is None


def test_what_really_happened_stands_beside_it() -> None:
    samples = hour(lambda at: 600.0)
    samples[100:] = [
        Sample(s.time, 4, 4, s.input_rate, None, {"total_lag": None}) for s in samples[100:]
    ]
    happened = tried(samples, 0.8).happened
    assert (happened.changes, happened.largest_backlog) == (1, 5.0)
    assert happened.channel_hours == pytest.approx((8 * 1000 + 4 * 2600) / 3600, abs=0.05)
    assert tried(hour(lambda at: 600.0, lag=None), 0.8).happened.largest_backlog is None


def test_times_without_a_rate_count_for_nothing() -> None:
    found = tried(hour(lambda at: None if 1200 <= at < 2400 else 1000.0), 0.8)
    assert found.seconds == 2400
    assert found.happened.channel_hours == pytest.approx(8 * 2400 / 3600)
    assert not [step for step in found.steps if BEGIN + 1230 < step.time < BEGIN + 2400]
    # Who was away for long: nobody samples, and nothing is known after half a minute.
    away = [sample for sample in hour(lambda at: 1000.0) if not 1200 <= sample.time - BEGIN < 2400]
    assert tried(away, 0.8).seconds == pytest.approx(2400, abs=45)


def test_it_is_bounded() -> None:
    """Whatever the times are: a ring of an hour may have been filled over days."""
    days = [Sample(BEGIN + 600 * at, 8, 8, 1000.0, None, {}) for at in range(360)]
    close = [Sample(BEGIN + 0.01 * at, 8, 8, 1000.0, None, {}) for at in range(10_000)]
    for samples in (days, close):
        assert len(tried(samples, 0.8).steps) <= MOST_STEPS


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([], "rates of 0 s"),
        (hour(lambda at: None), "rates of 0 s"),
        (hour(lambda at: 1000.0)[:3], "rates of 30 s"),
    ],
)
def test_too_little_is_said(samples: list[Sample], said: str) -> None:
    with pytest.raises(NotReadyError, match=said) as error:
        tried(samples, 0.8)
    assert error.value.reason is Reason.NO_DATA


@pytest.mark.parametrize(
    ("rate", "stages"),
    [
        (1000, [(1000, 400)]),
        (1000, [(1000, 0)]),  # nothing comes just now
        (200, [(1000, 400), (100, 200), (500, 800)]),
        (1000, [(1000, 400), (None, 0)]),
        (None, [(None, 0)]),
        (None, [(1000, 0), (100, 0)]),
        (None, [(1000, 0), (100, 1)]),
    ],
)
def test_a_region_does_what_its_tightest_stage_does(
    rate: float | None, stages: list[tuple[float | None, float]]
) -> None:
    around = now(*(load(arriving, capacity(seen) if seen else None) for seen, arriving in stages))
    if rate is None:
        with pytest.raises(NotReadyError):
            seen_model(around, "0", 30.0)
    else:
        assert seen_model(around, "0", 30.0).true_rate == rate


def test_a_loss_per_channel_is_the_one_that_was_seen() -> None:
    seen = capacity(200, width=8, loss=0.02)
    model = seen_model(now(load(400, seen)), "0", 30.0)
    assert all(math.isclose(model.rate_at(width), seen.rate_at(width)) for width in (1, 8, 20))
    assert (model.shards, model.largest_shard, model.batch_seconds) == (24, 1 / 24, 2.0)
