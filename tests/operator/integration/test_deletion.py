"""A deleted job leaves nothing."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from tests.operator.integration.hand_played import HandPlayedPe
from tests.operator.integration.world import World, application, bundle, condition

from streamgraft_common.kinds import CONFIG_MAP, POD, SERVICE
from streamgraft_common.resources import JOB, PARALLEL_REGION, PROCESSING_ELEMENT
from streamgraft_operator.kafka.topics import SETTINGS
from streamgraft_operator.settings import Settings

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator")]


async def test_nothing_is_left(
    world: World,
    player: HandPlayedPe,
    source_topic: str,
    kafka: AdminClient,
    settings: Settings,
    tmp_path: Path,
) -> None:
    await world.upload(bundle(application(world.namespace)))
    await world.submit()
    job = await world.job_in("Healthy")
    checkpoints = tmp_path / world.namespace / f"job-{job['metadata']['uid']}" / "r" / "0"
    checkpoints.mkdir(parents=True)

    await world.client.delete(JOB.path(world.namespace, "job"))
    await world.eventually(JOB, "job", lambda job: job is None)

    for kind in (PROCESSING_ELEMENT, PARALLEL_REGION, POD, CONFIG_MAP, SERVICE):
        assert await world.names(kind) == []
    topics = kafka.list_topics(timeout=10).topics
    assert not [name for name in topics if name.startswith(f"{world.namespace}.")]
    assert source_topic in topics
    assert f"{world.namespace}-out" in topics
    assert not checkpoints.parents[1].exists()


async def test_job_that_was_never_accepted_goes_at_once(world: World) -> None:
    await world.submit()
    await world.job_in("Pending")
    await world.client.delete(JOB.path(world.namespace, "job"))
    await world.eventually(JOB, "job", lambda job: job is None)


async def test_events_tell_the_story(world: World, player: HandPlayedPe, source_topic: str) -> None:
    await world.submit()
    await world.job_in("Pending")
    await world.upload(bundle(application(world.namespace)))
    await world.job_in("Healthy")
    reasons = {event["reason"] for event in await world.events()}
    assert {"BundleMissing", "Submitting"} <= reasons


async def test_topics_that_the_job_did_not_make_stay(
    world: World, player: HandPlayedPe, source_topic: str, kafka: AdminClient
) -> None:
    foreign = f"{world.namespace}.job.theirs"
    kafka.create_topics([NewTopic(foreign, 1, 1)])[foreign].result(30)
    await world.upload(bundle(application(world.namespace)))
    await world.submit()
    job = await world.job_in("Healthy")
    internal = job["status"]["madeInKafka"]["topics"]
    assert foreign not in internal
    options = kafka.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, internal[0])])
    settings = next(iter(options.values())).result(30)
    assert {name: settings[name].value for name in SETTINGS} == SETTINGS

    await world.client.delete(JOB.path(world.namespace, "job"))
    await world.eventually(JOB, "job", lambda job: job is None)

    topics = kafka.list_topics(timeout=10).topics
    assert [name for name in topics if name.startswith(f"{world.namespace}.")] == [foreign]
    kafka.delete_topics([foreign])[foreign].result(30)


async def test_a_topic_in_the_way_is_neither_used_nor_deleted(
    world: World, source_topic: str, kafka: AdminClient
) -> None:
    foreign = f"{world.namespace}.job.done"
    kafka.create_topics([NewTopic(foreign, 1, 1)])[foreign].result(30)
    await world.upload(bundle(application(world.namespace)))
    await world.submit()
    job = await world.job(lambda status: condition({"status": status}, "KafkaAvailable"))
    assert "did not make it" in condition(job, "KafkaAvailable")["message"]
    await world.client.delete(JOB.path(world.namespace, "job"))
    await world.eventually(JOB, "job", lambda job: job is None)
    assert foreign in kafka.list_topics(timeout=10).topics
    kafka.delete_topics([foreign])[foreign].result(30)
