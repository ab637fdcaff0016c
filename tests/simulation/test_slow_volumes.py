"""Files on the checkpoint volume that take long to be removed: what was done before is not done
again at each look."""

from dataclasses import replace
from typing import Any

import pytest
from tests.simulation.applications import Submission
from tests.simulation.faults import delete_job, submit
from tests.simulation.healthy import begin_healthy
from tests.simulation.savepoint_faults import is_healthy
from tests.simulation.world import World

from streamgraft_common.kinds import EVENT
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, SAVEPOINT, JobStatus
from streamgraft_operator.job import deletion
from streamgraft_operator.kafka.client import Kafka
from streamgraft_operator.kit.external_calls import UnderWay
from streamgraft_operator.savepoint.controller import SavepointController
from streamgraft_operator.savepoint.repositories import Repositories

SUBMISSION = Submission("job", stages=1, max_width=2, width=1)


@pytest.fixture
def volume(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Have a volume that removes nothing before it is told to; count what comes before that."""
    counts: dict[str, Any] = {"done": False, "looks": 0, "kafka": 0, "repository": 0}
    delete, leave = Kafka.delete, Repositories.remove

    async def files(*_: object) -> None:
        counts["looks"] += 1
        if not counts["done"]:
            raise UnderWay

    async def kafka(*arguments: Any) -> None:
        counts["kafka"] += 1
        await delete(*arguments)

    async def repository(*arguments: Any, **named: Any) -> str:
        counts["repository"] += 1
        return await leave(*arguments, **named)

    monkeypatch.setattr(deletion, "remove_checkpoints", files)
    monkeypatch.setattr(SavepointController, "_remove_files", files)
    monkeypatch.setattr(Kafka, "delete", kafka)
    monkeypatch.setattr(Repositories, "remove", repository)
    return counts


def test_a_job_waits_for_them_and_asks_kafka_once(volume: dict[str, Any]) -> None:
    world = World(1)
    with world.surroundings():
        begin_healthy(world, SUBMISSION)
        delete_job(world, "job")
        world.run(120.0)
        assert world.get(JOB, "job")
        assert volume["looks"] > 3
        world.brokers.unreliable = 1.0
        world.run(300.0)
        volume["done"] = True
        world.run(10.0)
        assert world.get(JOB, "job") is None
        assert volume["kafka"] == 1
        assert "TopicsLeftOver" not in {item["reason"] for item in world.objects(EVENT)}


def test_a_savepoint_waits_for_them_and_its_repository_is_told_once(
    volume: dict[str, Any],
) -> None:
    world = World(1)
    with world.surroundings():
        begin_healthy(world, SUBMISSION)
        savepoint: Object = SAVEPOINT.manifest("first", "test", {"job": "job"})
        world.request("POST", SAVEPOINT, "", savepoint)
        world.run(60.0)
        world.request("DELETE", SAVEPOINT, "first", {})
        world.run(60.0)
        assert world.get(SAVEPOINT, "first")
        assert volume["looks"] > 3
        volume["done"] = True
        world.run(10.0)
        assert world.get(SAVEPOINT, "first") is None
        assert volume["repository"] == 1


def test_no_job_starts_from_a_savepoint_that_waits_for_them(volume: dict[str, Any]) -> None:
    """Its shards would wait for ever for what is gone in the end; but one that has it goes on."""
    world = World(1)
    with world.surroundings():
        begin_healthy(world, SUBMISSION)
        world.request("POST", SAVEPOINT, "", SAVEPOINT.manifest("first", "test", {"job": "job"}))
        world.run(60.0)
        begun = replace(SUBMISSION, job="begun", extra={"savepoint": {"name": "first"}})
        submit(world, begun)
        world.run(120.0)
        assert is_healthy(world, "begun")
        world.request("DELETE", SAVEPOINT, "first", {})
        world.run(10.0)
        submit(world, replace(begun, job="late"))
        submit(world, replace(begun, version=2))
        world.run(120.0)
        assert is_healthy(world, "begun")
        late = JobStatus.model_validate((world.get(JOB, "late") or {})["status"])
        assert "savepoint first is being deleted" in late.message
