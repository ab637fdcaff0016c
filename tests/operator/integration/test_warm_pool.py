"""A widening takes pods of the warm pool; the region's selector counts one pod per channel."""

from functools import partial

import pytest
from tests.operator.integration.hand_played import HandPlayedPe
from tests.operator.integration.world import World, application, bundle

from streamgraft_common.kinds import POD
from streamgraft_common.kube import Invalid
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB
from streamgraft_operator.warm_pool import step

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator")]

POOL = "streamgraft.io/pool=warm"


async def pool(world: World, size: int) -> set[str]:
    """Wait until the pool has this size; return its pods."""
    await world.until(lambda: _has(world, size))
    return set(await world.names(POD, POOL))


async def _has(world: World, size: int) -> bool:
    return len(await world.names(POD, POOL)) == size


async def with_pool(world: World, size: int) -> set[str]:
    """Run a job with a pool of this size; return the pool's pods, which run."""
    await world.upload(bundle(application(world.namespace)))
    await world.submit(warmPool=size)
    await world.job_in("Healthy")
    warm = await pool(world, size)
    for name in warm:
        await world.eventually(POD, name, lambda pod: pod and pod["status"]["phase"] == "Running")
    return warm


async def test_widening_adopts(world: World, player: HandPlayedPe, source_topic: str) -> None:
    warm = await with_pool(world, 2)
    before = await world.uids()

    await world.scale("job-r", 3)
    region = await world.serving("job-r", 3)
    channels = set(await world.names(POD, region["status"]["selector"]))
    assert channels == {"job-2-1", *warm}
    wide = await world.uids()
    assert {name: wide[name] for name in before} == before

    refilled = await pool(world, 2)
    assert refilled.isdisjoint(warm)
    await world.scale("job-r", 1)
    await world.serving("job-r", 1)
    assert await world.names(POD, region["status"]["selector"]) == ["job-2-1"]
    path = JOB.path(world.namespace, "job")
    await world.client.patch(path, {"spec": {"warmPool": 0}})
    assert await pool(world, 0) == set()


async def test_channels_that_go_fill_it(
    world: World, player: HandPlayedPe, source_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their pods wait there, and are the next channels."""
    warm = await with_pool(world, 2)
    monkeypatch.setattr(step, "SETTLED_SECONDS", 600.0)  # so nothing else fills it
    uids = await world.uids()
    for _ in range(2):
        await world.scale("job-r", 3)
        region = await world.serving("job-r", 3)
        assert set(await world.names(POD, region["status"]["selector"])) == {"job-2-1", *warm}
        await world.scale("job-r", 1)
        await world.serving("job-r", 1)
        assert await pool(world, 2) == warm
    now = await world.uids()
    assert {name: now[name] for name in warm} == {name: uids[name] for name in warm}
    assert player.violations == []


async def test_it_finds_its_own_size_where_regions_scale_themselves(
    world: World, player: HandPlayedPe, source_topic: str
) -> None:
    """All that a new region may grow waits, also behind its first step, and the next channels are
    of it. A number is asked for and wins."""
    adl = application(world.namespace)
    (region,) = adl["regions"]
    scaled = {**region, "autoscaling": {"minWidth": 1, "maxWidth": region["maxWidth"]}}
    await world.upload(bundle({**adl, "regions": [scaled]}))
    await world.submit()
    await world.job_in("Healthy")
    await pool(world, 3)
    await world.scale("job-r", 3)
    await world.serving("job-r", 3)
    await world.scale("job-r", 1)
    await world.serving("job-r", 1)
    warm = await pool(world, 3)
    await world.scale("job-r", 3)
    region = await world.serving("job-r", 3)
    assert len(set(warm) & set(await world.names(POD, region["status"]["selector"]))) == 2
    path = JOB.path(world.namespace, "job")
    with pytest.raises(Invalid, match="must be a number of pods, or auto"):
        await world.client.patch(path, {"spec": {"warmPool": "many"}})
    await world.client.patch(path, {"spec": {"warmPool": 0}})
    await pool(world, 0)
    await world.client.patch(path, {"spec": {"warmPool": "auto", "warmPoolMemory": "600Mi"}})
    await pool(world, 1)


async def test_a_limit_of_memory_counts_since_kubernetes_requests_it(
    world: World, player: HandPlayedPe, source_topic: str
) -> None:
    adl = application(world.namespace)
    (region,) = adl["regions"]
    scaled = {**region, "autoscaling": {"minWidth": 1, "maxWidth": region["maxWidth"]}}
    await world.upload(bundle({**adl, "regions": [scaled]}))
    resources = {"requests": {"cpu": "1000"}, "limits": {"memory": "1Gi"}}
    await world.submit(processingElement={"resources": resources}, warmPoolMemory="1Gi")
    await world.job_in("Healthy")
    (name,) = await pool(world, 1)
    pod = await world.get(POD, name)
    assert pod
    assert pod["spec"]["containers"][0]["resources"]["requests"]["memory"] == "1Gi"
    path = JOB.path(world.namespace, "job")
    await world.client.patch(path, {"spec": {"warmPoolMemory": "1000Mi"}})
    await pool(world, 0)
    await world.until(lambda: _says_why(world))


async def _says_why(world: World) -> bool:
    said = "no driver waits: one takes 1024Mi, warmPoolMemory is 1000Mi"
    return said in [event["message"] for event in await world.events()]


async def test_pod_that_was_adopted_and_dies_is_replaced_by_the_next(
    world: World, player: HandPlayedPe, source_topic: str
) -> None:
    (first,) = await with_pool(world, 1)
    for count, lost in ((2, "job-1-1"), (3, first)):
        (waiting,) = await pool(world, 1)
        await world.client.delete(POD.path(world.namespace, lost))
        pe = await world.pe("job-1", partial(_runs, count))
        assert pe["status"]["pod"] == waiting
        await world.job_in("Healthy")


def _runs(launch: int, item: Object) -> bool:
    return bool(item["status"]["launchCount"] == launch and item["status"]["phase"] == "Running")
