"""An edit whose bundle does not come, or Kafka, says so, once, and what runs goes on."""

from dataclasses import replace
from typing import Any

import pytest
from tests.simulation.applications import Submission
from tests.simulation.fake_resources import FakeResource
from tests.simulation.fake_storage import Change
from tests.simulation.faults import submit
from tests.simulation.healthy import begin_healthy
from tests.simulation.world import World

from streamgraft_common.conditions import find
from streamgraft_common.kube.store import Key
from streamgraft_common.resources import JOB, JobStatus
from streamgraft_common.resources.base import Condition
from streamgraft_operator.application.bundles import Bundles
from streamgraft_operator.kit.external_calls import ExternalCalls, UnderWay

SUBMISSION = Submission("job", stages=1, max_width=2, width=1)


def status(world: World) -> JobStatus:
    return JobStatus.model_validate((world.get(JOB, "job") or {})["status"])


def accepted(world: World) -> Condition:
    condition = find(status(world).conditions, "Accepted")
    assert condition
    return condition


def test_an_edit_that_waits_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    world, writes, answers = World(1), list[str](), False
    refresh = Bundles.refresh

    async def awaited(*arguments: Any) -> None:
        if not answers:
            raise UnderWay
        await refresh(*arguments)

    def note(resource: FakeResource, change: Change) -> None:
        if resource.kind == JOB.kind:
            writes.append(change.last["metadata"]["name"])

    with world.surroundings():
        begin_healthy(world, SUBMISSION)
        monkeypatch.setattr(Bundles, "refresh", awaited)
        submit(world, replace(SUBMISSION, version=2))
        world.run(5.0)
        said = accepted(world)
        assert (said.status, said.reason, said.observed_generation) == (
            "Unknown",
            "BundleAwaited",
            2,
        )
        assert "has not answered yet" in status(world).message
        assert status(world).phase == "Healthy"
        world.server.storage.observers.append(note)
        world.run(60.0)
        assert not writes
        answers = True
        world.run(60.0)
        assert accepted(world).status == "True"
        assert status(world).phase == "Healthy"
        assert status(world).bundle_digest == replace(SUBMISSION, version=2).digest


@pytest.mark.parametrize("extra", [{}, {"bootstrapServers": "renamed:9092"}])
def test_an_edit_that_waits_for_kafka_says_that(
    monkeypatch: pytest.MonkeyPatch, extra: dict[str, str]
) -> None:
    """To make the topics that it adds, or to know whether other brokers are of the same Kafka."""
    world, answers = World(1), False
    ask = ExternalCalls.ask

    async def late(self: ExternalCalls, key: Key, purpose: str, *rest: Any, **named: Any) -> Any:
        if purpose == "kafka" and not answers:
            raise UnderWay
        return await ask(self, key, purpose, *rest, **named)

    with world.surroundings():
        begin_healthy(world, SUBMISSION)
        monkeypatch.setattr(ExternalCalls, "ask", late)
        submit(world, replace(SUBMISSION, stages=1 if extra else 2, extra=extra))
        world.run(5.0)
        said = accepted(world)
        assert (said.status, said.reason) == ("Unknown", "KafkaUnavailable")
        assert said.observed_generation == 2
        assert f"Kafka at {extra.get('bootstrapServers', '')}" in status(world).message
        assert status(world).phase == "Healthy"
        answers = True
        world.run(120.0)
        assert accepted(world).status == "True"
        assert status(world).phase == "Healthy"


def test_an_edit_while_kafka_is_away_is_no_refusal() -> None:
    world = World(1)
    with world.surroundings():
        begin_healthy(world, SUBMISSION)
        world.brokers.unreliable = 1.0
        submit(world, replace(SUBMISSION, stages=2))
        world.run(60.0)
        said = accepted(world)
        assert (said.status, said.reason) == ("Unknown", "KafkaUnavailable")
        assert "the topics for this edit can't be made: " in said.message
        assert status(world).phase == "Healthy"
        world.brokers.unreliable = 0.0
        world.run(120.0)
        assert accepted(world).status == "True"
