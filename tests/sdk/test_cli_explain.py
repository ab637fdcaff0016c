"""`streamgraft explain region`: the text, from what the adapter and the HPA say."""

import shlex
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.promtool.check import passes

from streamgraft.cli._explain import explanation, load_query, scales_itself
from streamgraft_autoscaler import (
    Capacity,
    Demand,
    DemandPolicy,
    StageLoad,
    Surroundings,
    demand,
)
from streamgraft_autoscaler.pause import expected_pause
from streamgraft_autoscaler.pricing import MeasuredChange, measured_price
from streamgraft_common.adl import Autoscaling, Period
from streamgraft_common.resources import (
    ParallelRegionSpec,
    PoolHeld,
    PoolReason,
    WarmPoolStatus,
)

AUTOSCALER: dict[str, Any] = {
    "metadata": {"name": "j-r"},
    "spec": {
        "minReplicas": 1,
        "maxReplicas": 8,
        "metrics": [{"type": "Object", "object": {"metric": {"name": "demand"}}}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 1800}},
    },
    "status": {
        "currentReplicas": 2,
        "desiredReplicas": 2,
        "conditions": [{"type": "ScalingActive", "status": "True", "message": "valid"}],
    },
}


POOL = {"size": "auto", "regions": 1, "memory": "2Gi", "drivers": 3, "ready": 2}
POOL |= {"kinds": 1, "driverBytes": 2**29}
POOL |= {"told": {"size": 3, "needed": 3, "reason": "Expected", "held": ""}}
APART = {"totals": "a query per shard, where one was planned"}


def explained(
    signal: dict[str, Any],
    *autoscalers: dict[str, Any],
    pool: dict[str, Any] | None = None,
    autoscaling: dict[str, Any] | None = None,
    **more: Any,
) -> str:
    """Return the explanation of a region of width 2 with this demand; `pool`: what differs."""
    region = {
        "namespace": "ns",
        "name": "j-r",
        "job": "j",
        "region": "r",
        "width": 2,
        "serving": 2,
        "maxWidth": 8,
        "resizing": False,
        "asleep": False,
        "signals": {"demand": signal},
        **more,
    }
    facts = {
        "region": region,
        "autoscaling": autoscaling,
        "autoscalers": list(autoscalers),
        "warmPool": {**POOL, **(pool or {})},
        "queryPerShard": APART,
    }
    return "\n".join(explanation(facts))


PRICE = measured_price([MeasuredChange(1, 30.0, 1.0)], 1.0)


def signal(input_rate: float, width: int = 2) -> dict[str, Any]:
    """Return the demand of a load as REST tells it, at 100 records/s per busy channel."""
    load = StageLoad(
        input_rate, 0.0, 1.0, 0.125, Capacity(100.0, 2, 0.5, 0.0, {2: 100.0}, 0.0, 0.0)
    )
    policy = DemandPolicy(1, 8, 8, 0.8, 0.25, PRICE, 60.0, expected_pause([], 0.0))
    found = demand({"0": load}, policy, Surroundings(width))
    assert isinstance(found, Demand)
    inputs = asdict(found)
    return {"value": inputs.pop("value"), "inputs": inputs}


def test_it_tells_no_load_at_which_a_width_changes_that_does_not() -> None:
    assert "the width does not grow any further and fewer" in explained(signal(700.0, width=8))
    only = explained(signal(10.0, width=1))
    assert "the width grows above 95 records/s of work\n" in only
    assert "fewer channels" not in only


def test_the_price_of_a_change_and_its_reason() -> None:
    text = explained(signal(100.0))
    assert "A width change has to save 40 s of a channel (measured in 1 changes: channels" in text


def test_inputs_decision_and_what_would_change_it() -> None:
    text = explained(signal(100.0), AUTOSCALER)
    assert "100.0 records/s arrive" in text
    assert "a busy channel does 100.0 records/s" in text
    assert (
        "the width grows above 190 records/s of work and fewer channels do below 64 records/s"
        in text
    )
    assert "Decision: width 2" in text
    assert "ScalingActive True: valid" in text
    assert "to shrink, the need must last for 1800 s" in text


MODEL = {"trueRate": 25.0, "lossPerChannel": 0.02, "largestShard": 0.4, "medianShard": 0.1}
MODEL |= {"batchSeconds": 2.0, "batchCostSeconds": 0.0, "launchSeconds": 47.0, "pauseSeconds": 2.5}


def test_it_says_how_to_replay_the_regions_own_load() -> None:
    """By what was measured of it: also of its skew, and of what a width change takes."""
    assert "streamgraft replay" not in explained(signal(100.0))
    text = explained(signal(100.0), model=MODEL)
    typed = shlex.split(text.splitlines()[-1])
    assert typed[:3] == ["streamgraft", "replay", "PROMETHEUS_URL"]
    assert " ".join(typed[3:-1]) == (
        "--true-rate 25 --shards 8 --loss-per-channel 0.02 --largest-shard 0.4 --median-shard 0.1"
        " --batch 2 --batch-cost 0 --launch 47 --pause 2.5 --objective 60 --query"
    )
    assert typed[-1] == load_query("ns", "j", "r")


def test_what_it_replays_first_is_the_regions_own_policy() -> None:
    """Every setting of it that is not the default, or another one would be the baseline."""
    asked = Autoscaling(
        mode="advise",
        min_width=2,
        max_width=6,
        headroom=0.5,
        change_cost_seconds=30.0,
        latency_seconds=20.0,
        forecast=False,
        utilization_weights={"a": 2.0},
        periods=[Period(start="08:00", end="17:00", min_width=3)],
    )
    wire = asked.model_dump(by_alias=True, mode="json")
    text = explained(signal(100.0), model=MODEL, autoscaling=wire)
    command, periods = text.splitlines()[-2:]
    typed = shlex.split(command)
    settings = [value for option, value in pairwise(typed) if option == "--set"]
    tried = Autoscaling.model_validate(dict(item.split("=") for item in settings))
    left_out = {"mode": "advise", "utilization_weights": {"a": 2.0}, "periods": asked.periods}
    assert tried.model_copy(update=left_out) == asked
    assert typed[typed.index("--objective") + 1] == "20"
    assert "knows nothing of its periods" in periods


@pytest.mark.integration
@pytest.mark.parametrize(("gaps", "rate"), [(0, 20), (5, 16), (None, 20)])
def test_the_load_is_counted_in_records(gaps: int | None, rate: float, tmp_path: Path) -> None:
    """As true rates are: transactions leave offsets without a record. None: nobody tells it."""
    labels = 'namespace="ns",streams_job="j",region="r",stage="0"'
    told = {"rows": 20, "gaps": gaps} if gaps is not None else {}
    series = [
        (f'streamgraft_pe_input_{name}_total{{{labels},pod="a"}}', f"0+{step}x90")
        for name, step in told.items()
    ]
    ends = f'streamgraft_pe_input_end_offset{{{labels},topic="t",partition="0",pod="a"}}'
    series.append((ends, "0+100x90"))
    query = load_query("ns", "j", "r")
    expected = {"expr": query, "eval_time": "7m", "exp_samples": [{"labels": "{}", "value": rate}]}
    case = {
        "interval": "5s",
        "input_series": [{"series": name, "values": values} for name, values in series],
        "promql_expr_test": [expected],
    }
    cases = tmp_path / "cases.yaml"
    cases.write_text(yaml.safe_dump({"evaluation_interval": "5s", "tests": [case]}))
    passes(cases)


def test_it_says_what_decides_where_the_demand_does_not() -> None:
    names = ("relative_lag_change_rate_gated", "utilization")
    metrics = [{"type": "Object", "object": {"metric": {"name": name}}} for name in names]
    metrics.append({"type": "ContainerResource", "containerResource": {"name": "cpu"}})
    other = {**AUTOSCALER, "spec": {**AUTOSCALER["spec"], "metrics": metrics}}
    text = explained(signal(100.0), other)
    assert "it goes by relative_lag_change_rate_gated and utilization and cpu" in text
    assert "The demand, by which nothing is decided here: width 2" in text
    assert "Decision" not in text
    assert "it goes by demand" in explained(signal(100.0), AUTOSCALER)


def test_it_shows_what_held_the_width() -> None:
    assert "but the largest width is 8" in explained(signal(10_000.0), AUTOSCALER)


def test_it_shows_a_missing_value_and_a_missing_autoscaler() -> None:
    text = explained({"reason": "Stale", "message": "too old"})
    assert "none: Stale: too old" in text
    assert "the width is held" in text
    assert "No HorizontalPodAutoscaler scales it" in text


def test_what_wakes_a_region_that_sleeps() -> None:
    unknown = {"reason": "NoData", "message": "no lag"}
    slept = [{"type": "ScaledToZero", "status": "True", "message": ""}]
    waking = {**AUTOSCALER, "status": {"conditions": slept}}
    asleep: dict[str, Any] = {"width": 0, "serving": 0, "asleep": True}
    assert "Only a width that somebody sets wakes it" in explained(unknown, AUTOSCALER, **asleep)
    assert "can't wake it while the demand has no value" in explained(unknown, waking, **asleep)
    text = explained(signal(0.0), waking, **asleep)
    assert "wakes it as soon as a record waits or arrives" in text


def test_a_region_without_channels_is_not_said_to_be_busy() -> None:
    """Its capacity is known from before it fell asleep, and a record waits."""
    load = StageLoad(1.0, 1.0, 1.0, 0.125, Capacity(100.0, 2, 0.5, 0.0, {2: 100.0}, 0.0, 0.0))
    policy = DemandPolicy(0, 8, 8, 0.8, 0.25, PRICE, 60.0, expected_pause([], 0.0))
    found = demand({"0": load}, policy, Surroundings(0))
    assert isinstance(found, Demand)
    inputs = asdict(found)
    value = {"value": inputs.pop("value"), "inputs": inputs}
    text = explained(value, AUTOSCALER, width=0, serving=0, asleep=True)
    assert "it has no channel: with any work it wakes up" in text
    assert "busy;" not in text
    assert "Decision: width 1" in text


def told(reason: PoolReason, held: PoolHeld = "", size: int = 3, needed: int = 3) -> dict[str, Any]:
    """Return what the operator says of a pool."""
    status = WarmPoolStatus(size=size, needed=needed, reason=reason, held=held)
    return {"told": status.to_wire()}


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("Expected", "3 should: the policy expects to need them within half an hour"),
        ("LargestStep", "3 should: the largest step of the last day took so many"),
        ("NewRegion", "3 should: a region is new, and all counts that it may grow"),
        ("OneChannel", "3 should: enough for one more channel, the least"),
        ("Widest", "3 should: no region may grow any further"),
        ("NoneFits", "3 should: new channels ask for pods of their own, which no pool has"),
    ],
)
def test_it_says_how_many_drivers_should_wait_and_why(reason: PoolReason, said: str) -> None:
    text = explained(signal(100.0), pool=told(reason))
    assert f"Warm pool of the job: 2 of 3 drivers wait ready; {said}\n" in text
    assert "none is started" not in text


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("NotCalm", "a width changes, or processing elements do not run yet"),
        ("Behind", "processing elements are behind, for which the pool waits three minutes"),
        ("NoRoom", "a processing element finds no node with room"),
        ("Refused", "the API server refuses their pods"),
        ("DriverFailed", "one that was to wait has failed within the last minute"),
    ],
)
@pytest.mark.parametrize("size", ["auto", 3])
def test_it_says_why_no_driver_is_started(held: PoolHeld, said: str, size: object) -> None:
    pool = {"drivers": 0, "ready": 0, "size": size, **told("Expected", held)}
    text = explained(signal(100.0), pool=pool)
    assert "0 of 0 drivers wait ready; " in text
    assert f"  none is started now: {said}" in text


@pytest.mark.parametrize(("driver", "room"), [(2**30, 2), (3 * 2**30, 0)])
def test_it_says_what_memory_leaves_of_a_pool(driver: int, room: int) -> None:
    pool = {"driverBytes": driver, **told("LargestStep", size=room)}
    assert (
        "drivers wait ready; 3 should (the largest step of the last day took so many), but"
        f" warmPoolMemory, which is 2Gi, has room for {room} (one takes {driver >> 20}Mi)"
    ) in explained(signal(100.0), pool=pool)


def test_it_says_if_nobody_has_sized_a_pool_yet() -> None:
    assert "has not said yet how many should" in explained(signal(100.0), pool={"told": None})


def test_it_says_that_a_pool_goes_by_no_region() -> None:
    """All have an HPA of the user's, are asleep, or are only advised."""
    none = {"drivers": 0, "ready": 0, "regions": 0, "driverBytes": 3 * 2**30}
    text = explained(signal(100.0), pool=none)
    assert "none is asked for" in text
    assert "warmPoolMemory" not in text
    assert "should" not in text
    assert "the job asks for 2" in explained(signal(100.0), pool={**none, "size": 2})


@pytest.mark.parametrize(
    ("width", "autoscaling", "counts"),
    [
        (1, {}, True),
        (0, {"mode": "scale", "minWidth": 0}, False),
        (1, {"mode": "advise"}, False),
        (1, None, False),
    ],
)
def test_a_pool_goes_by_regions_that_scale_themselves(
    width: int, autoscaling: dict[str, Any] | None, counts: bool
) -> None:
    spec = {"job": "j", "region": "r", "width": width, "maxWidth": 8, "key": []}
    region = ParallelRegionSpec.model_validate({**spec, "autoscaling": autoscaling})
    assert scales_itself(region) is counts


def test_it_says_that_a_pool_has_one_kind_of_driver() -> None:
    assert "kinds of drivers" not in explained(signal(100.0))
    text = explained(signal(100.0), pool={"kinds": 2})
    assert "of the 2 kinds of drivers of a channel it has one: the others start cold" in text


def test_it_says_which_stages_run_more_queries_than_planned() -> None:
    assert "\nStage totals: a query per shard, where one was planned" in explained(signal(100.0))
