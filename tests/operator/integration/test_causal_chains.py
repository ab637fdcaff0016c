"""Causal chains (cloud native Streams, section 5): whatever a user deletes comes back, and a PE is
launched again only if its launch count says so."""

import pytest
from tests.operator.integration.hand_played import HandPlayedPe
from tests.operator.integration.world import World, application, bundle

from streamgraft_common.kinds import CONFIG_MAP, POD, SERVICE, Kind
from streamgraft_common.resources import JOB, PARALLEL_REGION, PROCESSING_ELEMENT
from streamgraft_operator.kit import metrics

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator", "player")]

LAUNCHES = {"job-0": 1, "job-1": 1, "job-2": 1, "job-3": 1}
"""PEs 0 and 1 are outside, 2 and 3 the channels of the region."""


@pytest.fixture
async def healthy(world: World, player: HandPlayedPe, source_topic: str) -> World:
    """A job that runs, its region two channels wide."""
    await world.upload(bundle(application(world.namespace)))
    await world.submit(regions={"r": {"width": 2}})
    await world.serving("job-r", 2)
    await world.job_in("Healthy")
    return world


async def launches(world: World) -> dict[str, int]:
    """Return the launch count of every PE."""
    listing = await world.client.get(PROCESSING_ELEMENT.path(world.namespace))
    return {item["metadata"]["name"]: item["status"]["launchCount"] for item in listing["items"]}


async def delete(world: World, kind: Kind, name: str) -> None:
    """Delete an object by hand and wait until another one has its name."""
    old = await world.get(kind, name)
    assert old
    await world.client.delete(kind.path(world.namespace, name))
    await another(world, kind, name, old["metadata"]["uid"])


async def another(world: World, kind: Kind, name: str, uid: str) -> None:
    """Wait until the object of a name is not the one with this uid."""
    await world.eventually(kind, name, lambda item: item and item["metadata"]["uid"] != uid)


async def test_what_only_describes_comes_back_and_restarts_nothing(healthy: World) -> None:
    before = await healthy.uids()
    for name in ("job-0", "job-2"):
        await delete(healthy, SERVICE, name)
        await delete(healthy, CONFIG_MAP, name)
    await delete(healthy, CONFIG_MAP, "job-job")
    await delete(healthy, PARALLEL_REGION, "job-r")
    await healthy.serving("job-r", 2)
    job = await healthy.job_in("Healthy")
    assert job["status"]["generationId"] == 1
    assert await launches(healthy) == LAUNCHES
    assert await healthy.uids() == before


async def test_deleted_pod_raises_the_launch_count_of_its_pe_alone(healthy: World) -> None:
    before = await healthy.uids()
    for name in ("job-0-1", "job-3-1"):
        await healthy.client.delete(POD.path(healthy.namespace, name))
    for name in ("job-0-2", "job-3-2"):
        await healthy.eventually(POD, name, lambda pod: pod)
    await healthy.job_in("Healthy")
    await healthy.serving("job-r", 2)
    assert await launches(healthy) == LAUNCHES | {"job-0": 2, "job-3": 2}
    after = await healthy.uids()
    assert {name: uid for name, uid in after.items() if name in before} == {
        name: before[name] for name in ("job-1-1", "job-2-1")
    }


async def test_job_with_a_failing_shard_is_not_healthy_and_says_why(healthy: World) -> None:
    """The pod is ready, for it goes on trying: only its report tells."""

    async def say(message: str) -> None:
        status = {"runtime": {"shards": {"0": {"message": message}}}}
        path = PROCESSING_ELEMENT.path(healthy.namespace, "job-0")
        await healthy.client.patch(f"{path}/status", {"status": status})

    await say("the topic is gone")
    job = await healthy.job_in("Submitted")
    reason = "waiting for job-0 (shard 0 fails and is tried again: the topic is gone)"
    assert job["status"]["message"] == f"3 of 4 PEs are ready: {reason}"
    await say("")
    await healthy.job_in("Healthy")


async def test_deleted_pe_begins_anew(healthy: World) -> None:
    """A new PE counts its launches from 1; its pod is another one, whatever its name."""
    before = await healthy.uids()
    for name in ("job-1", "job-2"):
        await delete(healthy, PROCESSING_ELEMENT, name)
    for name in ("job-1-1", "job-2-1"):
        await another(healthy, POD, name, before[name])
    await healthy.job_in("Healthy")
    await healthy.serving("job-r", 2)
    assert await launches(healthy) == LAUNCHES
    after = await healthy.uids()
    assert {name for name in after if after[name] == before[name]} == {"job-0-1", "job-3-1"}


async def test_deleted_job_goes_by_label(healthy: World) -> None:
    """No object is deleted on its own, however many there are."""

    def single(kind: Kind) -> float:
        labels = {"verb": "delete", "kind": kind.kind}
        found = metrics.REGISTRY.get_sample_value("streamgraft_operator_api_writes_total", labels)
        return found or 0.0

    kinds = (PARALLEL_REGION, PROCESSING_ELEMENT, POD, SERVICE, CONFIG_MAP)
    before = [single(kind) for kind in kinds]
    await healthy.client.delete(JOB.path(healthy.namespace, "job"))
    await healthy.eventually(JOB, "job", lambda job: job is None)
    assert [single(kind) for kind in kinds] == before
    for kind in kinds:
        assert await healthy.names(kind) == []
