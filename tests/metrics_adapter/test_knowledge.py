"""What the adapter learns of regions, and what their resources ask for at a time."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from streamgraft_autoscaler import (
    Capacity,
    Demand,
    NotReadyError,
    Reason,
    StageLoad,
    Surroundings,
    demand,
)
from streamgraft_autoscaler.pause import LONGEST_SECONDS, ExpectedPause
from streamgraft_autoscaler.propagation import ALONE
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_common.resources.base import Condition
from streamgraft_metrics_adapter.learning.knowledge import Knowledge, Known
from streamgraft_metrics_adapter.prometheus.observations import RegionObservation
from streamgraft_metrics_adapter.prometheus.queries import Input
from streamgraft_metrics_adapter.regions import Region, region_of
from streamgraft_metrics_adapter.signals.policies import (
    policy_of,
    refuse_blackout,
    scheduled_soon,
)

MONDAY_NOON = datetime(2026, 1, 5, 12, tzinfo=UTC).timestamp()
WINDOW = 60.0


def region(
    name: str = "r", upstream: tuple[str, ...] = (), other: bool = False, **autoscaling: Any
) -> Region:
    """Return a region of a job, with one finished width change that paused a shard for 3 s."""
    spec = {
        "job": "j",
        "region": name,
        "width": 1,
        "maxWidth": 8,
        "key": ["k"],
        "upstream": list(upstream),
        "otherInputs": other,
        "autoscaling": autoscaling,
    }
    change = {
        "fromWidth": 2,
        "toWidth": 1,
        "epoch": 4,
        "requestedAt": "2026-01-01T00:00:00Z",
        "pauseSecondsMax": 3.0,
    }
    body = PARALLEL_REGION.manifest(f"j-{name}", "ns", spec)
    return region_of({**body, "status": {"width": 1, "changes": [change]}})


def seen(rate: float, processed: float) -> RegionObservation:
    """Return what a refresh saw of a warm region of one channel, busy for 80 % of its time."""
    observation = RegionObservation(values={Input.STATE_BYTES: 1e6})
    observation.stage("0").values |= {
        Input.INPUT_RATE: rate,
        Input.PROCESSING_RATE: processed,
        Input.BUSY_SLOTS: 0.8,
        Input.WARM_SLOTS: 0.8,
        Input.SLOTS: 1.0,
    }
    return observation


def test_capacity_and_pauses_are_learned_and_forgotten() -> None:
    knowledge, item = Knowledge(WINDOW), region()
    knowledge.learn(item, seen(90.0, 80.0), 1000.0)
    known = knowledge.of(item, 1000.0)
    assert known.capacities["0"].true_rate == pytest.approx(100.0)
    assert policy_of(item, known, 1e6).pause.seconds == 3.0
    knowledge.keep(set())
    assert knowledge.of(item, 1000.0) == Known(1000.0)


def test_pauses_of_changes_that_an_outage_held_up_say_nothing_of_others() -> None:
    """One of more than a day must not keep the region from having a value."""
    knowledge, item = Knowledge(WINDOW), region()
    (change,) = item.status.changes
    odd = [
        change.model_copy(update={"requested_at": f"2026-01-0{day}T00:00:00Z", **values})
        for day, values in (
            (2, {"rollback": True, "pause_seconds_max": 3300.0}),
            (3, {"failure": "not in time", "pause_seconds_max": 3300.0}),
            (4, {"pause_seconds_max": 200_000.0}),
        )
    ]
    status = item.status.model_copy(update={"changes": [change, *odd]})
    knowledge.learn(replace(item, status=status), seen(90.0, 80.0), 1000.0)
    pauses = knowledge.of(item, 1000.0).pauses
    assert [pause.seconds for pause in pauses] == [3.0, LONGEST_SECONDS]


def test_a_window_with_a_width_change_in_it_teaches_no_capacity() -> None:
    knowledge, item = Knowledge(WINDOW), region()
    condition = Condition(type="Resizing", status="True", reason="WidthChanged")
    status = item.status.model_copy(update={"conditions": [condition]})
    knowledge.learn(replace(item, status=status), seen(90.0, 80.0), 1000.0)
    knowledge.learn(item, seen(90.0, 800.0), 1000.0 + WINDOW)
    assert knowledge.of(item, 1000.0 + WINDOW).capacities == {}
    knowledge.learn(item, seen(90.0, 80.0), 1001.0 + WINDOW)
    assert knowledge.of(item, 1001.0 + WINDOW).capacities["0"].true_rate == pytest.approx(100.0)


async def test_regions_of_a_job_learn_of_each_other() -> None:
    knowledge = Knowledge(WINDOW)
    capacity = Capacity(100.0, 1, 0.5, 0.0, {1: 100.0}, 0.0, 0.0)
    made = []
    for item, rate in ((region("a"), 200.0), (region("b", ("a",)), 50.0)):
        load = StageLoad(rate, 0.0, capacity=capacity)
        policy = policy_of(item, Known(MONDAY_NOON), 0.0)
        result = demand({"0": load}, policy, Surroundings(1))
        assert isinstance(result, Demand)
        made.append((item, seen(rate, 50.0), result))
    await knowledge.conclude(0.0, made)
    assert knowledge.of(made[0][0], MONDAY_NOON).neighbourhood == ALONE
    # The first region does 50/s now, and 200/s once it is wide enough.
    growth = knowledge.of(made[1][0], MONDAY_NOON).neighbourhood.growth
    assert growth == pytest.approx(200 / 50)


PAUSED = ExpectedPause(60.0, 60.0, 0.0, 1)
"""As long as the catch-up time: channels are held ready for twice of what arrives."""


async def test_the_reserve_for_pauses_is_no_flow() -> None:
    """Where nothing waits nothing grows, and who has room for what arrives holds nobody back."""
    knowledge = Knowledge(WINDOW)
    capacity = Capacity(100.0, 1, 0.5, 0.0, {1: 100.0}, 0.0, 0.0)
    chain = (region("a"), region("b", ("a",)), region("c", ("b",)))
    for now in (MONDAY_NOON, MONDAY_NOON + 2.0):
        made = []
        for item in chain:
            policy = replace(policy_of(item, Known(now), 0.0), max_width=2, pause=PAUSED)
            load = StageLoad(100.0, 0.0, capacity=capacity)
            around = Surroundings(1, neighbourhood=knowledge.of(item, now).neighbourhood)
            found = demand({"0": load}, policy, around)
            assert (found.stages["0"].work, found.stages["0"].flow) == (200.0, 100.0)
            made.append((item, seen(100.0, 100.0), found))
        await knowledge.conclude(now, made)
        assert {knowledge.of(item, now).neighbourhood for item in chain} == {ALONE}


FULL = Capacity(51.0, 4, 0.5, 0.0, {2: 100.0, 4: 51.0}, 0.0, 0.0)
"""Two channels did 200/s, four do 204/s: a service behind them is full."""


@pytest.mark.parametrize(
    ("capacity", "largest", "width", "most"),
    [
        (Capacity(100.0, 1, 0.5, 0.0, {1: 100.0}, 0.0, 0.0), 0.0, 1, 800.0),
        (Capacity(100.0, 1, 0.5, 0.0, {1: 100.0}, 0.0, 0.0), 0.5, 1, 200.0),
        (Capacity(100.0, 4, 0.5, 0.0, {4: 100.0, 8: 30.0}, 0.175, 0.175), 0.0, 4, 400.0),
        (FULL, 0.0, 4, 204.0),
        (FULL, 0.0, 2, 200.0),
    ],
    ids=["even", "hot shard", "slower together", "service is full", "service was full"],
)
async def test_what_a_region_can_do_caps_those_above(
    capacity: Capacity, largest: float, width: int, most: float
) -> None:
    """The largest width alone tells nothing of it. At a target of 80 %, 95 % busy is crowded."""
    knowledge, policy = Knowledge(WINDOW), policy_of(region("a"), Known(MONDAY_NOON), 0.0)
    policy = replace(policy, pause=ExpectedPause(0.0, 0.0, 0.0, 0))
    load = StageLoad(1600.0, 0.0, capacity=Capacity(1e4, 1, 0.5, 0.0, {1: 1e4}, 0.0, 0.0))
    below = StageLoad(1600.0, 0.0, largest_shard=largest, capacity=capacity)
    made = [
        (region("a"), seen(1600.0, 1600.0), demand({"0": load}, policy, Surroundings(1))),
        (
            region("b", ("a",)),
            seen(1600.0, most),
            demand({"0": below}, policy, Surroundings(width)),
        ),
    ]
    await knowledge.conclude(0.0, made)
    around = knowledge.of(made[0][0], MONDAY_NOON).neighbourhood
    assert around.bottleneck == "b"
    assert around.usable == pytest.approx(0.95 * most / 1600)


async def test_the_stage_with_the_least_room_caps_those_above() -> None:
    """Stage 0 needs most channels, and they are enough; of stage 1 one shard gets all, 1,000/s."""
    knowledge, policy = Knowledge(WINDOW), policy_of(region("a"), Known(MONDAY_NOON), 0.0)
    policy = replace(policy, pause=ExpectedPause(0.0, 0.0, 0.0, 0))

    def stage(channel: float, largest: float = 0.0) -> StageLoad:
        capacity = Capacity(channel, 1, 0.5, 0.0, {1: channel}, 0.0, 0.0)
        return StageLoad(1600.0, 0.0, largest_shard=largest, capacity=capacity)

    below = seen(1600.0, 1000.0)
    below.stage("1").values[Input.PROCESSING_RATE] = 1000.0
    found = demand({"0": stage(400.0), "1": stage(1000.0, 1.0)}, policy, Surroundings(8))
    assert found.stage == "0"
    made = [
        (region("a"), seen(1600.0, 1600.0), demand({"0": stage(1e4)}, policy, Surroundings(1))),
        (region("b", ("a",)), below, found),
    ]
    await knowledge.conclude(0.0, made)
    around = knowledge.of(made[0][0], MONDAY_NOON).neighbourhood
    assert around.bottleneck == "b"
    assert around.usable == pytest.approx(0.95 * 1000 / 1600)


@pytest.mark.parametrize(("most", "holds_back"), [(1120.0, False), (1100.0, True)])
async def test_a_region_that_keeps_up_holds_nobody_back(most: float, holds_back: bool) -> None:
    """At its largest width, 94 % busy with 1,050/s: those above it must be able to send as much."""
    knowledge, policy = Knowledge(WINDOW), policy_of(region("a"), Known(MONDAY_NOON), 0.0)
    policy = replace(policy, max_width=4, pause=ExpectedPause(0.0, 0.0, 0.0, 0))

    def found(channel: float) -> Demand:
        capacity = Capacity(channel, 4, 0.5, 0.0, {4: channel}, 0.0, 0.0)
        return demand({"0": StageLoad(1050.0, 0.0, capacity=capacity)}, policy, Surroundings(4))

    made = [
        (region("a"), seen(1050.0, 1000.0), found(250.0)),
        (region("b", ("a",)), seen(1050.0, 1050.0), found(most / 4)),
    ]
    await knowledge.conclude(0.0, made)
    around = knowledge.of(made[0][0], MONDAY_NOON).neighbourhood
    assert (around.bottleneck == "b") is holds_back


@pytest.mark.parametrize(("other", "growth"), [(False, 2.0), (True, 1.25)])
async def test_growth_is_that_of_the_stage_that_needs_most(other: bool, growth: float) -> None:
    """Its second stage gets ten records for each: its work is ten times that of the first one."""
    knowledge, capacity = Knowledge(WINDOW), Capacity(100.0, 1, 0.5, 0.0, {1: 100.0}, 0.0, 0.0)
    policy = replace(
        policy_of(region("a"), Known(MONDAY_NOON), 0.0), pause=ExpectedPause(0.0, 0.0, 0.0, 0)
    )
    above = {"0": StageLoad(2.0, 0.0, capacity=capacity), "1": StageLoad(20.0, 0.0)}
    above["1"] = replace(above["1"], capacity=capacity)
    observed = seen(2.0, 1.0)
    observed.stage("1").values[Input.PROCESSING_RATE] = 10.0
    below = {"0": StageLoad(40.0, 0.0, capacity=capacity)}
    made = [
        (region("a"), observed, demand(above, policy, Surroundings(1))),
        (region("b", ("a",), other), seen(40.0, 40.0), demand(below, policy, Surroundings(1))),
    ]
    await knowledge.conclude(0.0, made)
    assert knowledge.of(made[1][0], MONDAY_NOON).neighbourhood.growth == pytest.approx(growth)


def test_a_period_raises_the_least_width() -> None:
    busy = {"start": "08:00", "end": "17:00", "days": ["Mon"], "minWidth": 3}
    asked = region(minWidth=2, periods=[busy])
    assert policy_of(asked, Known(MONDAY_NOON), 0.0).min_width == 3
    assert policy_of(asked, Known(MONDAY_NOON + 86_400), 0.0).min_width == 2
    refuse_blackout(asked, MONDAY_NOON)


def test_a_period_that_begins_soon_is_prepared_for() -> None:
    """Half an hour before, so that drivers wait when it begins."""
    busy = {"start": "12:29", "end": "12:45", "days": ["Mon"], "minWidth": 3}
    asked = region(minWidth=2, periods=[busy, {"start": "12:40", "end": "13:00"}])
    assert scheduled_soon(asked, MONDAY_NOON) == 3
    assert scheduled_soon(asked, MONDAY_NOON - 120) == 0
    assert scheduled_soon(asked, MONDAY_NOON + 3600) == 0


def test_a_period_without_a_width_is_a_blackout() -> None:
    asked = region(periods=[{"start": "11:00", "end": "13:00"}])
    with pytest.raises(NotReadyError) as caught:
        refuse_blackout(asked, MONDAY_NOON)
    assert caught.value.reason is Reason.BLACKOUT
    refuse_blackout(asked, MONDAY_NOON + 3600)


def test_the_tighter_objective_counts() -> None:
    asked = region(latencySeconds=20, catchUpSeconds=60)
    assert policy_of(asked, Known(MONDAY_NOON), 0.0).catch_up_seconds == 20


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        region(periods=[{"start": "11:00", "end": "13:00", "timeZone": "Middle/Earth"}])


async def test_how_the_load_grows_is_learned() -> None:
    knowledge, item = Knowledge(WINDOW), region()
    capacity = Capacity(100.0, 1, 0.5, 0.0, {1: 100.0}, 0.0, 0.0)
    for step in range(8):
        rate = 50.0 + 5.0 * step
        load = StageLoad(rate, 0.0, capacity=capacity)
        found = demand({"0": load}, policy_of(item, Known(MONDAY_NOON), 0.0), Surroundings(1))
        assert isinstance(found, Demand)
        await knowledge.conclude(300.0 * step, [(item, seen(rate, rate), found)])
    assert knowledge.of(item, 2100.0).past.growth == pytest.approx(60 / 85)
