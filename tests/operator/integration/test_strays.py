"""Regions and PEs without a Job, and regions that can't be read: each is told, none harms."""

from collections.abc import Callable

import pytest
from tests.operator.integration.world import World, application, bundle, condition

from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PARALLEL_REGION, PROCESSING_ELEMENT

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("operator", "player", "source_topic"),
]

REGION = {"job": "lonely", "region": "r", "width": 1, "maxWidth": 4, "key": ["k"]}
NO_ZONE = {"periods": [{"start": "00:00", "end": "00:00", "timeZone": "America"}]}


def says(kind: str, reason: str) -> Callable[[Object | None], object]:
    """Return what waits for a condition with a reason."""

    def holds(item: Object | None) -> bool:
        return bool(item) and condition(item or {}, kind).get("reason") == reason

    return holds


async def test_what_has_no_job_says_so(world: World) -> None:
    """A condition and an Event, until the Job comes: it has not made them, so they stay strays."""
    region = PARALLEL_REGION.manifest("lonely-r", world.namespace, REGION)
    await world.client.create(PARALLEL_REGION.path(world.namespace), region)
    spec = {"job": "lonely", "peId": 0, "stageName": "pe-0"}
    pe = PROCESSING_ELEMENT.manifest("lonely-0", world.namespace, spec)
    await world.client.create(PROCESSING_ELEMENT.path(world.namespace), pe)
    for kind, name in ((PARALLEL_REGION, "lonely-r"), (PROCESSING_ELEMENT, "lonely-0")):
        item = await world.eventually(kind, name, says("JobFound", "JobMissing"))
        assert "there is no Job lonely in this namespace" in condition(item, "JobFound")["message"]

    async def told() -> bool:
        events = await world.events()
        kinds = {e["involvedObject"]["kind"] for e in events if e["reason"] == "JobMissing"}
        return kinds == {"ParallelRegion", "ProcessingElement"}

    await world.until(told)
    job = JOB.manifest("lonely", world.namespace, {"bundle": {"configMap": {"name": "none"}}})
    await world.client.create(JOB.path(world.namespace), job)
    await world.eventually(PARALLEL_REGION, "lonely-r", says("JobFound", "NotOfItsJob"))


async def test_a_region_that_cannot_be_read_is_its_own_error(world: World) -> None:
    """Another job is submitted beside it, and its own region is put right by its job."""
    odd = PARALLEL_REGION.manifest("lonely-r", world.namespace, REGION | {"autoscaling": NO_ZONE})
    await world.client.create(PARALLEL_REGION.path(world.namespace), odd)
    item = await world.eventually(PARALLEL_REGION, "lonely-r", says("Accepted", "Unreadable"))
    assert "'America' is no time zone" in condition(item, "Accepted")["message"]

    await world.upload(bundle(application(world.namespace)))
    await world.submit()
    await world.job_in("Healthy")
    path = PARALLEL_REGION.path(world.namespace, "job-r")
    await world.client.patch(path, {"spec": {"autoscaling": NO_ZONE}})
    await world.eventually(
        PARALLEL_REGION, "job-r", lambda item: item and "autoscaling" not in item["spec"]
    )
    await world.job_in("Healthy")
    await world.scale("job-r", 2)
    await world.serving("job-r", 2)
