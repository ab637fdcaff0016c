"""Objects of others that have the names of a job's: they stay as they are, and the Job says so."""

from dataclasses import replace
from typing import Any

import pytest
from tests.simulation.applications import Submission
from tests.simulation.faults import delete_job, submit
from tests.simulation.healthy import begin_healthy
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.test_edits import accepted
from tests.simulation.test_imports import sharing
from tests.simulation.world import World

from streamgraft_common.conditions import find
from streamgraft_common.kinds import CONFIG_MAP, POD, SERVICE, Kind
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import (
    CONSISTENT_REGION,
    EXPORT,
    IMPORT,
    JOB,
    PARALLEL_REGION,
    PROCESSING_ELEMENT,
    ProcessingElementStatus,
)
from streamgraft_operator.kit import metrics

SUBMISSION = Submission("job", stages=1, max_width=2, width=1)
FETCHED: dict[str, Any] = {"bundle": {"url": "https://example.org/b.zip"}}
SHARED = {"job": "other", "operator": "out", "bootstrapServers": "b:9092", "schema": "[]"}
CONTENT: dict[Kind, Object] = {
    CONFIG_MAP: {"data": {"settings": "important"}},
    SERVICE: {"spec": {"selector": {"app": "legacy"}}},
    POD: {"spec": {"containers": [{"name": "a"}], "volumes": []}},
    EXPORT: {"spec": {**SHARED, "stream": "s", "topic": "theirs", "properties": {"level": 9}}},
    IMPORT: {"spec": {**SHARED, "subscription": "level >= 9"}},
    CONSISTENT_REGION: {"spec": {"job": "other", "region": "all", "trigger": "operatorDriven"}},
}
CHANNEL = "job-3"
"""A PE that the job has at width 2 only."""


@pytest.fixture
def world() -> World:
    return World(1)


def kind_of(value: object) -> str:
    """Return how a parameter is called in the name of a test."""
    return value.kind if isinstance(value, Kind) else ""


def put(world: World, kind: Kind, name: str) -> Object:
    """Create an object of somebody else."""
    world.request("POST", CONFIG_MAP, "", {"metadata": {"name": "owner"}})
    owner = (world.get(CONFIG_MAP, "owner") or {})["metadata"]["uid"]
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}]
    metadata = {"name": name, "labels": {"app": "cron"}, "ownerReferences": owners}
    manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    world.request("POST", kind, "", {**manifest, **CONTENT[kind]})
    found = world.get(kind, name)
    assert found
    return found


def spec_of(world: World, kind: Kind, name: str) -> Object:
    """Return the spec of an object; its status is ours whoever made it."""
    found: Object = (world.get(kind, name) or {})["spec"]
    return found


def resize(world: World, width: int) -> None:
    world.request("PATCH", PARALLEL_REGION, "job-r", {"spec": {"width": width}})


def begin(world: World) -> None:
    """Have a job that is healthy."""
    begin_healthy(world, SUBMISSION)


def says_so(world: World, kind: Kind, name: str) -> bool:
    """Return whether the Job tells of a name."""
    said, job = accepted(world), world.get(JOB, "job") or {}
    message: str = job["status"]["message"]
    told = message.startswith(f"{kind.kind} {name} belongs to something else: delete it")
    return told and said["reason"] == "NameTaken"


@pytest.mark.parametrize(
    ("kind", "name", "extra"),
    [
        (CONFIG_MAP, "job-job", {}),
        (CONFIG_MAP, "job-accepted", {}),
        (CONFIG_MAP, "job-fetched", FETCHED),
        (CONFIG_MAP, "job-0", {}),
        (CONFIG_MAP, "job-2", {}),
        (SERVICE, "job-0", {}),
        (SERVICE, "job-2", {}),
    ],
    ids=lambda value: value.kind if isinstance(value, Kind) else str(value or ""),
)
def test_a_name_that_is_taken(world: World, kind: Kind, name: str, extra: dict[str, Any]) -> None:
    with world.surroundings():
        theirs = put(world, kind, name)
        submission = Submission("job", stages=1, max_width=2, width=1, extra=extra)
        submit(world, submission)
        world.operators.start()
        world.run(60.0)
        assert says_so(world, kind, name)
        assert not world.objects(PROCESSING_ELEMENT)
        delete_job(world, "job")
        world.run(60.0)
        assert world.get(JOB, "job") is None
        assert world.get(kind, name) == theirs


@pytest.mark.parametrize("kind", [CONFIG_MAP, SERVICE], ids=lambda kind: kind.kind)
def test_a_job_goes_on_once_the_name_is_free(world: World, kind: Kind) -> None:
    with world.surroundings():
        put(world, kind, "job-2")
        submit(world, SUBMISSION)
        world.operators.start()
        world.run(60.0)
        world.request("DELETE", kind, "job-2", {})
        world.run(120.0)
        assert is_healthy(world, "job")


@pytest.mark.parametrize("kind", [CONFIG_MAP, SERVICE], ids=lambda kind: kind.kind)
def test_a_region_that_grows_into_a_name(world: World, kind: Kind) -> None:
    with world.surroundings():
        begin(world)
        theirs = put(world, kind, CHANNEL)
        resize(world, 2)
        world.run(30.0)
        assert says_so(world, kind, CHANNEL)
        assert world.get(kind, CHANNEL) == theirs
        resize(world, 1)
        world.run(60.0)
        assert is_healthy(world, "job")
        assert world.get(kind, CHANNEL) == theirs


@pytest.mark.parametrize("kind", [CONFIG_MAP, SERVICE], ids=lambda kind: kind.kind)
def test_a_region_that_narrows_leaves_what_came_in_the_place_of_its_own(
    world: World, kind: Kind
) -> None:
    with world.surroundings():
        begin(world)
        resize(world, 2)
        world.run(60.0)
        assert is_healthy(world, "job")
        world.request("DELETE", kind, CHANNEL, {})
        theirs = put(world, kind, CHANNEL)
        world.run(30.0)
        assert says_so(world, kind, CHANNEL)
        resize(world, 1)
        world.run(60.0)
        assert world.get(PROCESSING_ELEMENT, CHANNEL) is None
        assert is_healthy(world, "job")
        assert world.get(kind, CHANNEL) == theirs
        delete_job(world, "job")
        world.run(60.0)
        assert world.get(JOB, "job") is None
        assert world.get(kind, CHANNEL) == theirs


DECLARING: list[tuple[Kind, str, Submission]] = [
    (EXPORT, "job-out", sharing("job", imports=False, level=1)),
    (IMPORT, "job-shared", sharing("job", imports=True, level=1)),
    (CONSISTENT_REGION, "job-c", replace(SUBMISSION, consistent=True)),
]


@pytest.mark.parametrize(("kind", "name", "submission"), DECLARING, ids=kind_of)
def test_what_an_application_declares_leaves_that_of_others_alone(
    world: World, kind: Kind, name: str, submission: Submission
) -> None:
    with world.surroundings():
        theirs = put(world, kind, name)
        submit(world, submission)
        world.operators.start()
        world.run(60.0)
        assert says_so(world, kind, name)
        assert not world.objects(PROCESSING_ELEMENT)
        assert spec_of(world, kind, name) == theirs["spec"]
        delete_job(world, "job")
        world.run(60.0)
        assert world.get(JOB, "job") is None
        assert spec_of(world, kind, name) == theirs["spec"]
        submit(world, submission)
        world.run(10.0)
        world.request("DELETE", kind, name, {})
        world.run(120.0)
        assert is_healthy(world, "job")
        assert spec_of(world, kind, name)["job"] == "job"


@pytest.mark.parametrize(("kind", "name", "submission"), DECLARING, ids=kind_of)
def test_what_is_declared_of_others_and_came_before_a_watch_tells(
    world: World, kind: Kind, name: str, submission: Submission
) -> None:
    with world.surroundings():
        world.weather.watch_delay = 20.0
        world.operators.start()
        world.run(30.0)
        submit(world, submission)
        theirs = put(world, kind, name)
        world.run(60.0)
        assert says_so(world, kind, name)
        assert spec_of(world, kind, name) == theirs["spec"]


def test_a_name_that_is_taken_before_a_watch_tells(world: World) -> None:
    """By then the job is accepted; what is there is in its way all the same."""
    with world.surroundings():
        world.weather.watch_delay = 20.0
        world.operators.start()
        world.run(30.0)
        submit(world, SUBMISSION)
        theirs = [put(world, kind, "job-0") for kind in (CONFIG_MAP, SERVICE)]
        world.run(60.0)
        assert says_so(world, CONFIG_MAP, "job-0") or says_so(world, SERVICE, "job-0")
        assert theirs == [world.get(kind, "job-0") for kind in (CONFIG_MAP, SERVICE)]


def test_a_pod_of_somebody_else(world: World) -> None:
    """It is told, and counts as no launch."""
    with world.surroundings():
        theirs = put(world, POD, "job-0-1")
        cold = metrics.LAUNCHES.labels("cold")
        before = cold._value.get()
        submit(world, SUBMISSION)
        world.operators.start()
        world.run(60.0)
        message = "Pod job-0-1 belongs to something else: delete it"
        item = world.get(PROCESSING_ELEMENT, "job-0")
        assert item
        status = ProcessingElementStatus.model_validate(item["status"])
        created = find(status.conditions, "PodCreated")
        assert created
        assert (created.status, status.message) == ("False", created.message)
        assert status.message.startswith(message)
        assert message in (world.get(JOB, "job") or {})["status"]["message"]
        there = world.get(POD, "job-0-1")
        assert there
        assert there["metadata"]["uid"] == theirs["metadata"]["uid"]
        assert cold._value.get() == before + 2
        world.request("DELETE", POD, "job-0-1", {"gracePeriodSeconds": 0})
        world.run(120.0)
        assert is_healthy(world, "job")
