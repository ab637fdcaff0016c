"""Width changes through the scale subresource; shards are moved by the real conductor."""

from typing import Any

import pytest
from prometheus_client import generate_latest
from tests.operator.integration.hand_played import HandPlayedPe
from tests.operator.integration.world import World, application, bundle, condition

from streamgraft_common.kinds import POD, SERVICE
from streamgraft_common.kube import Invalid
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PARALLEL_REGION, PROCESSING_ELEMENT
from streamgraft_operator.kit import metrics

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator")]


async def healthy(world: World, **spec: Any) -> dict[str, str]:
    """Submit a job of one channel; return the uids of its pods once all run."""
    await world.upload(bundle(application(world.namespace)))
    await world.submit(**spec)
    await world.serving("job-r", 1)
    await world.job_in("Healthy")
    return await world.uids()


async def test_one_to_three_and_back(world: World, player: HandPlayedPe, source_topic: str) -> None:
    before = await healthy(world)

    await world.scale("job-r", 3)
    region = await world.serving("job-r", 3)
    owners = set(region["status"]["assignment"].values())
    assert owners == {0, 1, 2}
    assert sorted(await world.names(PROCESSING_ELEMENT)) == [f"job-{pe}" for pe in range(5)]
    job = await world.job_in("Healthy")
    assert job["status"]["peCount"] == 5
    wide = await world.uids()
    assert {name: wide[name] for name in before} == before
    labels = f'namespace="{world.namespace}",region="r",streams_job="job"'
    exposed = generate_latest(metrics.REGISTRY).decode()
    assert f'streamgraft_region_width{{kind="serving",{labels}}} 3.0' in exposed
    assert f"streamgraft_region_resizing{{{labels}}} 0.0" in exposed
    assert f"streamgraft_operator_width_changes_total{{{labels}}} 1.0" in exposed

    await world.scale("job-r", 1)
    region = await world.serving("job-r", 1)
    assert set(region["status"]["assignment"].values()) == {0}
    for gone in ("job-3-1", "job-4-1"):
        await world.eventually(POD, gone, lambda pod: pod is None)
    assert await world.uids() == before
    await world.job_in("Healthy")


async def test_width_beyond_the_maximum_is_refused(
    world: World, player: HandPlayedPe, source_topic: str
) -> None:
    await world.upload(bundle(application(world.namespace)))
    await world.submit(regions={"r": {"width": 2}})
    await world.serving("job-r", 2)
    with pytest.raises(Invalid, match="width must not exceed maxWidth"):
        await world.scale("job-r", 5)
    await world.serving("job-r", 2)


async def test_widths_change_behind_a_version_that_is_refused(
    world: World, player: HandPlayedPe, source_topic: str
) -> None:
    """Be it a bundle that can't be read, or a parameter that the application does not have."""
    before = await healthy(world)
    await world.upload(b"no zip file")
    await world.job(lambda status: "this is no bundle" in status["message"])
    await world.scale("job-r", 2)
    await world.serving("job-r", 2)
    path = JOB.path(world.namespace, "job")
    edit = {"parameters": {"sped": "2"}, "image": "other:2"}
    await world.client.patch(path, {"spec": edit})
    await world.upload(bundle(application(world.namespace)))
    await world.job(lambda status: "no parameter sped" in status["message"])
    await world.client.delete(SERVICE.path(world.namespace, "job-0"))
    await world.scale("job-r", 3)
    await world.serving("job-r", 3)
    await world.eventually(SERVICE, "job-0", lambda item: item)
    after = await world.uids()
    assert {name: after[name] for name in before} == before
    pods = await world.client.get(POD.path(world.namespace))
    assert "other:2" not in {pod["spec"]["containers"][0]["image"] for pod in pods["items"]}
    job = await world.job(lambda status: status["peCount"] == 5)
    assert condition(job, "Accepted")["status"] == "False"
    await world.client.patch(path, {"spec": dict.fromkeys(edit)})
    await world.job(lambda status: status["message"] == "all 5 PEs are ready")
    assert await world.uids() == after


async def test_pod_of_a_channel_dies_during_a_change(
    world: World, player: HandPlayedPe, source_topic: str
) -> None:
    await world.upload(bundle(application(world.namespace)))
    await world.submit()
    await world.serving("job-r", 1)
    player.serving = False
    await world.scale("job-r", 2)
    await world.eventually(POD, "job-3-1", lambda pod: pod and pod["spec"].get("nodeName"))
    await world.client.delete(POD.path(world.namespace, "job-3-1"))
    await world.pe("job-3", lambda item: item["status"]["launchCount"] == 2)
    player.serving = True
    await world.client.patch(
        POD.path(world.namespace, "job-0-1"), {"metadata": {"labels": {"nudge": "player"}}}
    )
    await world.serving("job-r", 2)
    await world.job_in("Healthy")


async def test_width_that_gets_no_healthy_channels_is_rolled_back(
    world: World, player: HandPlayedPe, source_topic: str
) -> None:
    before = await healthy(world, regions={"r": {"changeDeadlineSeconds": 2}})
    player.serving = False
    await world.scale("job-r", 2)

    def rolled_back(item: Object | None) -> bool:
        return condition(item or {}, "Resizing").get("reason") == "RolledBack"

    region = await world.eventually(PARALLEL_REGION, "job-r", rolled_back)
    assert "job-3" in condition(region, "Resizing")["message"]
    assert (region["spec"]["width"], region["status"]["width"]) == (2, 1)
    scale = await world.client.get(f"{PARALLEL_REGION.path(world.namespace, 'job-r')}/scale")
    assert scale["status"]["replicas"] == 1
    await world.eventually(PROCESSING_ELEMENT, "job-3", lambda item: item is None)
    await world.eventually(POD, "job-3-1", lambda pod: pod is None)
    assert await world.uids() == before
    assert "WidthChangeRolledBack" in {event["reason"] for event in await world.events()}
    # The job is what it was: nobody waits for channels that are not tried for now.
    job = await world.job_in("Healthy")
    assert job["status"]["message"] == f"all {job['status']['peCount']} PEs are ready"
    patient = {"regions": {"r": {"changeDeadlineSeconds": 60}}}
    await world.client.patch(JOB.path(world.namespace, "job"), {"spec": patient})
    await world.eventually(
        PARALLEL_REGION, "job-r", lambda item: item and item["spec"]["changeDeadlineSeconds"] == 60
    )
    player.serving = True
    await world.scale("job-r", 3)
    await world.serving("job-r", 3)
