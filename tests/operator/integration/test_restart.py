"""The operator may die at any moment: what it must remember is in the API server."""

import asyncio
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from tests.operator.integration.conftest import operating
from tests.operator.integration.hand_played import HandPlayedPe
from tests.operator.integration.processes import operator_process
from tests.operator.integration.world import World, application, bundle

from streamgraft_common import names
from streamgraft_common.kinds import CONFIG_MAP, POD, Kind
from streamgraft_common.kube import KubeClient
from streamgraft_common.resources import JOB, PROCESSING_ELEMENT
from streamgraft_local import Cluster
from streamgraft_operator.settings import Settings

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("until", [JOB, PROCESSING_ELEMENT, POD])
async def test_killed_while_submitting(
    cluster: Cluster,
    world: World,
    rights: KubeClient,
    settings: Settings,
    player: HandPlayedPe,
    source_topic: str,
    tmp_path: Path,
    until: Kind,
) -> None:
    """Killed as soon as the job has a status, a first PE exists, or a first pod."""
    await world.upload(bundle(application(world.namespace)))
    first = {JOB: "job", PROCESSING_ELEMENT: "job-0", POD: "job-0-1"}[until]
    async with operator_process(cluster, world, tmp_path) as process:
        await world.submit()
        await world.eventually(until, first, lambda item: item and item.get("status"))
        process.kill()
        await process.wait()
    async with operating(rights, settings):
        job = await world.job_in("Healthy")
        assert job["status"]["generationId"] == 1
        assert sorted(await world.names(POD)) == ["job-0-1", "job-1-1", "job-2-1"]


async def test_sigterm_stops_cleanly_and_the_next_operator_goes_on(
    cluster: Cluster,
    world: World,
    rights: KubeClient,
    settings: Settings,
    player: HandPlayedPe,
    source_topic: str,
    tmp_path: Path,
) -> None:
    """What happened while no operator ran is made up for: nothing running is restarted."""
    await world.upload(bundle(application(world.namespace)))
    async with operator_process(cluster, world, tmp_path) as process:
        await world.submit()
        await world.job_in("Healthy")
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    before = await world.uids()
    await world.client.delete(POD.path(world.namespace, "job-1-1"))
    await world.client.delete(CONFIG_MAP.path(world.namespace, "job-0"))
    await world.scale("job-r", 2)
    async with operating(rights, settings):
        await world.serving("job-r", 2)
        await world.job_in("Healthy")
        after = await world.uids()
        assert after.keys() == {"job-0-1", "job-1-2", "job-2-1", "job-3-1"}
        assert after["job-0-1"] == before["job-0-1"]
        assert after["job-2-1"] == before["job-2-1"]
        assert await world.get(CONFIG_MAP, "job-0")


@pytest.mark.parametrize(
    "submission",
    [
        {"spec": {"parameters": {"speed": "9"}}},
        {"metadata": {"annotations": {names.ANNOTATION_SUBMITTED: "again"}}},
    ],
    ids=["edited", "unchanged"],
)
async def test_an_upgrade_restarts_no_pod(
    world: World,
    rights: KubeClient,
    settings: Settings,
    player: HandPlayedPe,
    source_topic: str,
    submission: dict[str, Any],
) -> None:
    """A job keeps the image that it began with, in new pods as well, until it is submitted."""
    await run_once(world, rights, settings)
    before = await world.uids()
    async with operating(rights, replace(settings, image="streamgraft:next")):
        await world.scale("job-r", 2)
        await world.serving("job-r", 2)
        after = await world.uids()
        assert before.items() <= after.items()
        assert await images(world) == {"streamgraft"}
        path = JOB.path(world.namespace, "job")
        await world.client.patch(path, submission)
        await world.until(lambda: renewed(world))
    assert not before.items() & (await world.uids()).items()


async def run_once(world: World, rights: KubeClient, settings: Settings) -> None:
    """Submit the job to an operator that ends as soon as it is healthy."""
    await world.upload(bundle(application(world.namespace)))
    async with operating(rights, settings):
        await world.submit()
        await world.job_in("Healthy")


async def images(world: World) -> set[str]:
    """Return the images of all pods."""
    pods = (await world.client.get(POD.path(world.namespace)))["items"]
    return {pod["spec"]["containers"][0]["image"] for pod in pods}


async def renewed(world: World) -> bool:
    """Return whether all pods have the new image, and the job is healthy with them."""
    job = await world.get(JOB, "job")
    healthy = job is not None and job["status"]["phase"] == "Healthy"
    return healthy and await images(world) == {"streamgraft:next"}


async def test_two_operators_agree(
    world: World,
    rights: KubeClient,
    settings: Settings,
    player: HandPlayedPe,
    source_topic: str,
    cluster: Cluster,
    tmp_path: Path,
) -> None:
    """Two at a time are in each other's way but break nothing (the player checks owners)."""
    await world.upload(bundle(application(world.namespace)))
    second = operator_process(cluster, world, tmp_path)
    async with operating(rights, settings), second:
        await world.submit()
        await world.job_in("Healthy")
        for width in (3, 1, 4, 2):
            await world.scale("job-r", width)
            await world.serving("job-r", width)
        await world.job_in("Healthy")
        for name in ("job-0-1", "job-1-1", "job-2-1"):
            assert await world.get(POD, name)


async def test_broker_away_while_a_job_runs(
    cluster: Cluster,
    world: World,
    rights: KubeClient,
    settings: Settings,
    player: HandPlayedPe,
    source_topic: str,
) -> None:
    """The job says so and goes on; its pods are still looked after; it heals by itself."""
    await run_once(world, rights, settings)
    await asyncio.to_thread(cluster.stop, "kafka")
    try:
        async with operating(rights, settings):
            away = await world.job(lambda status: "does not answer" in status["message"])
            assert away["status"]["phase"] == "Healthy"
            await world.client.delete(POD.path(world.namespace, "job-0-1"))
            await world.pe("job-0", lambda item: item["status"].get("pod") == "job-0-2")
            await asyncio.to_thread(cluster.start, "kafka")
            await world.job(lambda status: status["message"] == "all 3 PEs are ready")
    finally:
        await asyncio.to_thread(cluster.start, "kafka")


async def test_broker_away_while_a_job_is_deleted(
    cluster: Cluster,
    world: World,
    rights: KubeClient,
    settings: Settings,
    player: HandPlayedPe,
    source_topic: str,
    kafka: AdminClient,
) -> None:
    """Its pods go at once, the job stays until its topics can go too."""
    await world.upload(bundle(application(world.namespace)))
    async with operating(rights, settings):
        await world.submit()
        await world.job_in("Healthy")
        await asyncio.to_thread(cluster.stop, "kafka")
        try:
            await world.client.delete(JOB.path(world.namespace, "job"))
            for name in ("job-0-1", "job-1-1", "job-2-1"):
                await world.eventually(POD, name, lambda pod: pod is None)
            job = await world.get(JOB, "job")
            assert job is not None
            assert names.FINALIZER in job["metadata"]["finalizers"]
        finally:
            await asyncio.to_thread(cluster.start, "kafka")
        await world.eventually(JOB, "job", lambda job: job is None)
    async with asyncio.timeout(30):  # a broker that just started learns late of a deletion
        while any(
            name.startswith(f"{world.namespace}.") for name in kafka.list_topics(timeout=10).topics
        ):
            await asyncio.sleep(0.2)
