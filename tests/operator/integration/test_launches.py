"""Pods: one per launch, a new one after any end."""

import asyncio
import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.operator.integration.hand_played import HandPlayedPe
from tests.operator.integration.world import World, application, bundle

from streamgraft_common import names
from streamgraft_common.kinds import POD
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_local import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator")]


@pytest.fixture
async def healthy(world: World, player: HandPlayedPe, source_topic: str) -> World:
    """A job that runs."""
    await world.upload(bundle(application(world.namespace)))
    await world.submit()
    await world.job_in("Healthy")
    return world


async def test_deleted_pod_is_launched_again(healthy: World) -> None:
    before = await healthy.uids()
    await healthy.client.delete(POD.path(healthy.namespace, "job-2-1"))
    pe = await healthy.pe(
        "job-2",
        lambda item: item["status"]["launchCount"] == 2 and item["status"]["phase"] == "Running",
    )
    assert pe["status"]["launchReason"] == "PodDeleted"
    assert pe["status"]["pod"] == "job-2-2"
    await healthy.job_in("Healthy")
    after = await healthy.uids()
    assert after.keys() == {"job-0-1", "job-1-1", "job-2-2"}
    assert after["job-0-1"] == before["job-0-1"]


async def test_pod_that_vanished_is_launched_again(healthy: World) -> None:
    path = POD.path(healthy.namespace, "job-1-1")
    await healthy.client.request("DELETE", path, body={"gracePeriodSeconds": 0})
    await healthy.pe("job-1", lambda item: item["status"]["launchCount"] == 2)
    await healthy.job_in("Healthy")


async def test_failing_pod_backs_off(healthy: World) -> None:
    for launch in (1, 2):
        name = names.pod_name("job", 0, launch)
        await healthy.eventually(POD, name, lambda pod: pod and pod["status"]["phase"] == "Running")
        ended = {"exitCode": 3, "reason": "Error"}
        status = {
            "phase": "Failed",
            # However long this takes, it did not run for long enough to be begun anew at once.
            "startTime": to_rfc3339(time.time() + 60),
            "containerStatuses": [
                {
                    "name": "pe",
                    "image": "streamgraft",
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"terminated": ended},
                }
            ],
        }
        path = POD.path(healthy.namespace, name)
        await healthy.client.patch(f"{path}/status", {"status": status})
    pe = await healthy.pe("job-0", lambda item: item["status"]["launchCount"] == 3)
    assert pe["status"]["launchReason"] == "PodFailed"
    assert pe["status"]["failureCount"] == 2
    assert pe["status"]["notBefore"]
    await healthy.job_in("Healthy")
    assert "job-0-3" in await healthy.uids()


async def test_what_a_dead_pe_had_open_in_kafka_is_aborted(
    healthy: World, cluster: Cluster
) -> None:
    """Readers need not wait for its next owner, nor for the brokers' patience to end."""
    pe = await healthy.pe("job-0", lambda item: item["status"]["runtime"]["shards"])
    topic = names.topic(healthy.namespace, "job", "raw", "r")
    owner = names.transactional_id(healthy.namespace, "job", pe["spec"]["stageName"], 0)
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    producer = Producer({**servers, "transactional.id": owner})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    assert producer.flush(10) == 0
    readers = {
        level: Consumer({**servers, "group.id": "test", "isolation.level": level})
        for level in ("read_committed", "read_uncommitted")
    }

    async def end(level: str) -> int:
        reader, partition = readers[level], TopicPartition(topic, 0)
        return int((await asyncio.to_thread(reader.get_watermark_offsets, partition))[1])

    assert (await end("read_committed"), await end("read_uncommitted")) == (0, 1)
    await healthy.client.request(
        "DELETE", POD.path(healthy.namespace, "job-0-1"), body={"gracePeriodSeconds": 0}
    )
    await healthy.pe("job-0", lambda item: item["status"]["launchCount"] == 2)
    # It is asked for when all is aborted.
    assert await end("read_committed") > 0
    for reader in readers.values():
        reader.close()
    with pytest.raises(KafkaException):
        producer.commit_transaction(10)
