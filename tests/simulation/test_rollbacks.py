"""A consistent region goes back to its last cut, though pods crash on the way."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from tests.simulation.applications import Submission
from tests.simulation.faults import any_submission, crash_pod, submit
from tests.simulation.healthy import begin_healthy
from tests.simulation.invariants import Broken
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.kinds import EVENT
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import (
    CONSISTENT_REGION,
    JOB,
    PROCESSING_ELEMENT,
    SAVEPOINT,
    SavepointStatus,
)
from streamgraft_operator.job import controller as job_controller
from streamgraft_operator.savepoint import controller, stages

SEEDS = range(5, 25)
"""In seed 4 the first cut takes longer than it may, as in one of some hundred."""
PATIENCE_SECONDS = 300


def status_of(world: World) -> Object:
    """Return the status of the one consistent region."""
    (item,) = world.objects(CONSISTENT_REGION)
    status: Object = item.get("status") or {}
    return status


def ask(world: World, field: str, number: int) -> None:
    """Ask for a cut or a rollback."""
    world.request("PATCH", CONSISTENT_REGION, "job-c", {"spec": {field: number}})


def until(world: World, field: str, number: int) -> None:
    """Let time pass until a number is reached."""
    waited = 0
    while status_of(world).get(field, 0) < number:
        waited += 1
        assert waited < PATIENCE_SECONDS, status_of(world)
        world.run(1.0)


def has_cut(world: World, *, falls_back: bool) -> None:
    """Submit a job, cut it, and go on for a while."""
    wanted = any_submission(world, "job")
    plain = replace(wanted, pooled=False, sleepy=False, consistent=True, falls_back=falls_back)
    if falls_back:
        plain = replace(plain, extra={})  # no pods but those of the region, whichever crashes
    begin_healthy(world, plain)
    ask(world, "requested", 1)
    until(world, "completedSequenceId", 1)
    world.run(30 + world.chance.random() * 60)


def roll_back(seed: int) -> None:
    """Cut, go on, go back while two pods crash, and go on. Raises Broken."""
    world = World(seed)
    with world.surroundings():
        has_cut(world, falls_back=False)
        ask(world, "rollbackRequested", 1)
        for _ in range(2):
            world.run(world.chance.random() * 15)
            crash_pod(world)
        until(world, "completedRollbackId", 1)
        world.run(60.0)


def roll_back_past_a_damaged_cut(seed: int) -> bool:
    """Cut twice, lose the second, go back; return whether it came to the first. Raises Broken."""
    world = World(seed)
    with world.surroundings():
        wanted = any_submission(world, "job")
        begin_healthy(world, replace(wanted, pooled=False, sleepy=False, consistent=True))
        for number in (1, 2):
            while len(cuts := status_of(world).get("cuts") or []) < number:
                ask(world, "requested", status_of(world).get("sequenceId", 0) + 1)
                world.run(20.0)
        (namespace,) = {item["metadata"]["namespace"] for item in world.objects(CONSISTENT_REGION)}
        world.nodes.checkpoints.damaged.add(names.savepoint_path(namespace, cuts[-1]["savepoint"]))
        ask(world, "rollbackRequested", 1)
        world.run(world.chance.random() * 15)
        crash_pod(world)
        until(world, "completedRollbackId", 1)
        world.run(60.0)
        return bool(status_of(world)["rollsBackTo"] == cuts[-2]["savepoint"])


@pytest.mark.parametrize("seed", range(5))
def test_past_a_damaged_cut_it_goes_to_the_one_before(seed: int) -> None:
    assert roll_back_past_a_damaged_cut(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_goes_back_and_each_record_is_in_each_topic_once_from_there(seed: int) -> None:
    roll_back(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_when_a_pod_crashes_it_goes_back_by_itself(seed: int) -> None:
    """Once for each crash, whatever crashes on the way back; and it can be cut again."""
    world = World(seed)
    with world.surroundings():
        has_cut(world, falls_back=True)
        world.run(120)
        assert status_of(world)["rollbackId"] == 0
        crash_pod(world)
        until(world, "completedRollbackId", 1)
        crash_pod(world)
        until(world, "completedRollbackId", 2)
        world.run(120.0)
        status = status_of(world)
        assert (status["rollbackId"], status["rollbacksInARow"]) == (2, 2)
        # What came again is worked off first: a cut that takes too long for that is given up.
        for _ in range(PATIENCE_SECONDS // 20):
            ask(world, "requested", status_of(world)["sequenceId"] + 1)
            world.run(20.0)
            if status_of(world)["completedSequenceId"] > 1:
                break
        assert status_of(world)["completedSequenceId"] > 1
        assert status_of(world)["rollbacksInARow"] == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_put_back_is_run_by_nobody_though_the_rollback_is_deleted(seed: int) -> None:
    """A pod goes on to copy for it; the shards are given back at once, and then taken again."""
    world = World(seed)
    with world.surroundings():
        goes_back(world)
        world.run(world.chance.random() * 5)
        options = {"propagationPolicy": "Background"}
        world.request("DELETE", SAVEPOINT, "job-c-rollback-1", options)
        until(world, "completedRollbackId", 1)
        world.run(60.0)
        assert is_healthy(world, "job")


def looks_for_long(world: World) -> None:
    """Cut, and go back, with copies that take longer to read than the region's time-out."""
    begin_healthy(world, Submission("job", stages=1, max_width=2, width=2, consistent=True))
    ask(world, "requested", 1)
    until(world, "completedSequenceId", 1)
    (region,) = world.objects(CONSISTENT_REGION)
    assert region["spec"]["drainTimeoutSeconds"] < PATIENCE_SECONDS / 2
    world.nodes.tempo = replace(world.nodes.tempo, look=2 * PATIENCE_SECONDS)
    for item in world.nodes.containers.values():
        item.pe.tempo = world.nodes.tempo
    ask(world, "rollbackRequested", 1)
    world.run(region["spec"]["drainTimeoutSeconds"] + 10)


@pytest.mark.parametrize("seed", range(5))
def test_a_rollback_looks_at_copies_for_as_long_as_it_takes_to_read_them(seed: int) -> None:
    """Also if a pod crashes that has looked at most of its own."""
    world = World(seed)
    with world.surroundings():
        looks_for_long(world)
        assert rollback_of(world).phase == "Saving"
        crash_pod(world)
        while (back := status_of(world)).get("completedRollbackId", 0) < 1:
            assert (back["state"], back["rollbackId"]) == ("RollingBack", 1)
            world.run(1.0)
        world.run(60.0)
        assert is_healthy(world, "job")


def test_a_rollback_that_can_not_read_its_cut_ends_with_that() -> None:
    """Nobody knows that it is damaged: each look fails, and is begun again."""
    world = World(1)
    with world.surroundings():
        looks_for_long(world)
        for item in world.nodes.containers.values():
            item.pe.sick = True
        world.run(3 * PATIENCE_SECONDS)
        assert "the disk is full" in rollback_of(world).message
        world.request("DELETE", SAVEPOINT, "job-c-cut-1", {"propagationPolicy": "Background"})
        for item in world.nodes.containers.values():
            item.pe.sick = False
        world.run(60.0)
        assert status_of(world)["state"] == "Running"
        assert is_healthy(world, "job")


async def nothing_is_skipped(*_: object) -> dict[str, list[int]]:
    """Let stages go on where they were at the cut, in topics that are written again."""
    return {}


@pytest.mark.parametrize(
    ("place", "name", "bug"),
    [
        (controller, "ends", nothing_is_skipped),
        (stages, "_stopped", lambda _: True),
    ],
)
def test_planted_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, place: ModuleType, name: str, bug: object
) -> None:
    monkeypatch.setattr(place, name, bug)

    def found(seed: int) -> bool:
        try:
            roll_back(seed)
        except (Broken, AssertionError):
            return True
        return False

    assert any(found(seed) for seed in SEEDS)


def goes_back(world: World) -> None:
    """Cut, and go back, until checkpoints are put back; that takes its time."""
    begin_healthy(world, Submission("job", stages=1, max_width=2, width=2, consistent=True))
    ask(world, "requested", 1)
    until(world, "completedSequenceId", 1)
    for item in world.nodes.containers.values():
        item.pe.tempo = replace(item.pe.tempo, plan=20.0)
    ask(world, "rollbackRequested", 1)
    while (back := rollback_of(world)).phase != "RollingBack":
        assert back.phase not in ("Completed", "Failed")
        world.run(0.1)


def edit_meanwhile(world: World, **edit: Any) -> None:
    """Submit another version, or an `edit`, while checkpoints are put back."""
    goes_back(world)
    submit(world, replace(world.jobs["job"], **(edit or {"version": 2})))
    world.run(2.0)
    assert rollback_of(world).phase == "RollingBack"


def rollback_of(world: World) -> SavepointStatus:
    """Return the status of the first rollback."""
    item = world.get(SAVEPOINT, "job-c-rollback-1") or {}
    return SavepointStatus.model_validate(item.get("status") or {})


def not_complete(world: World) -> list[str]:
    """Return the events about rollbacks that were cut off."""
    items = [item for item in world.objects(EVENT) if item["reason"] == "RollbackFailed"]
    return [item["message"] for item in items]


def accepted(world: World) -> Object:
    (job,) = world.objects(JOB)
    (found,) = [item for item in job["status"]["conditions"] if item["type"] == "Accepted"]
    condition: Object = found
    return condition


def test_an_edit_waits_for_the_rollback() -> None:
    world = World(1)
    with world.surroundings():
        edit_meanwhile(world)
        assert (accepted(world)["status"], accepted(world)["reason"]) == (
            "Unknown",
            "RollbackUnderWay",
        )
        until(world, "completedRollbackId", 1)
        assert not_complete(world) == []
        world.run(120.0)
        (job,) = world.objects(JOB)
        assert job["status"]["phase"] == "Healthy"
        assert job["status"]["bundleDigest"] == world.jobs["job"].digest


def test_what_the_rollback_needs_comes_back_while_an_edit_waits_for_it() -> None:
    """A PE that was deleted has its shards to put back: each would wait for the other."""
    world = World(1)
    with world.surroundings():
        edit_meanwhile(world)
        (source,) = [
            item
            for item in world.objects(PROCESSING_ELEMENT)
            if item["spec"]["stageName"] == "read"
        ]
        options = {"propagationPolicy": "Background"}
        world.request("DELETE", PROCESSING_ELEMENT, source["metadata"]["name"], options)
        until(world, "completedRollbackId", 1)
        world.run(120.0)
        (job,) = world.objects(JOB)
        assert job["status"]["phase"] == "Healthy"
        assert job["status"]["bundleDigest"] == world.jobs["job"].digest


def is_over(world: World) -> bool:
    """Return whether the first rollback has ended, or is gone."""
    item = world.get(SAVEPOINT, "job-c-rollback-1")
    return item is None or item["status"]["phase"] in ("Completed", "Failed")


def was_whole(world: World) -> bool:
    """Return whether no rollback failed in the midst."""
    failed = [item for item in world.objects(EVENT) if item["reason"] == "SavepointFailed"]
    return not_complete(world) == [] and failed == []


def stays_of(world: World, name: str) -> None:
    """Let time pass; what is left is the consistent region of this name, and no cut of `c`."""
    for _ in range(PATIENCE_SECONDS):
        if is_over(world):
            break
        world.run(1.0)
    assert is_over(world)
    world.run(120.0)
    assert was_whole(world)
    regions = [item["spec"]["region"] for item in world.objects(CONSISTENT_REGION)]
    assert regions == ([name] if name else [])
    of_cuts = {item["spec"]["consistentRegion"] for item in world.objects(SAVEPOINT)}
    assert of_cuts <= {name}
    assert is_healthy(world, "job")


@pytest.mark.parametrize("name", ["", "d"])
def test_a_consistent_region_is_dropped_or_renamed_behind_its_rollback(name: str) -> None:
    """Its cuts go with it, and a part of it would stay where it was before."""
    world = World(1)
    with world.surroundings():
        edit_meanwhile(world, region=name)
        assert accepted(world)["reason"] == "RollbackUnderWay"
        stays_of(world, name)


@pytest.mark.parametrize("name", ["", "d"])
def test_a_cut_that_is_being_gone_back_to_outlives_its_region(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Such an edit may have been let through the moment before."""
    monkeypatch.setattr(job_controller, "held_by", lambda *_: "")
    world = World(1)
    with world.surroundings():
        edit_meanwhile(world, region=name)
        assert accepted(world)["reason"] == "Planned"
        stays_of(world, name)


def test_a_refused_edit_does_not_end_the_rollback() -> None:
    world = World(1)
    with world.surroundings():
        edit_meanwhile(world, version=2, kept="sum")
        assert accepted(world)["reason"] == "GraphInvalid"
        until(world, "completedRollbackId", 1)
        assert not_complete(world) == []
        submit(world, replace(world.jobs["job"], version=1, kept="count"))
        world.run(120.0)
        assert is_healthy(world, "job")
