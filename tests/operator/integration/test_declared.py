"""Services and host pools that an application declares: they come, change and go with the job."""

import asyncio

import pytest
from tests.operator.integration.world import World, application, bundle

from streamgraft_common.kinds import SERVICE
from streamgraft_common.resources import HOST_POOL, JOB, PROCESSING_ELEMENT

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator")]


async def test_services_and_host_pools_are_the_jobs(world: World, source_topic: str) -> None:
    foreign = {"metadata": {"name": "job-taken"}, "spec": {"ports": [{"port": 1}]}}
    await world.client.create(SERVICE.path(world.namespace), foreign)

    def declared(port: int, **more: object) -> bytes:
        services = [
            {"name": "api", "operator": "work", "port": port, "targetPort": 8080},
            {"name": "taken", "operator": "read", "port": 80},
        ]
        pools = [{"name": "fast", "tags": ["ssd"], "exclusive": True}]
        adl = application(world.namespace, services=services, hostPools=pools)
        return bundle({**adl, **more})

    await world.upload(declared(80))
    await world.submit()
    await world.job_in("Submitted")
    service = await world.eventually(SERVICE, "job-api", bool)
    uid = (await world.client.get(JOB.path(world.namespace, "job")))["metadata"]["uid"]
    assert service["metadata"]["ownerReferences"][0]["uid"] == uid
    (port,) = service["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (80, 8080)
    selected = {"streamgraft.io/job": "job", "streamgraft.io/region": "r"}
    assert service["spec"]["selector"] == {**selected, "streamgraft.io/stage": "0"}
    pool = await world.eventually(HOST_POOL, "job-fast", bool)
    assert (pool["spec"]["job"], pool["spec"]["tags"]) == ("job", ["ssd"])
    taken = await world.get(SERVICE, "job-taken")
    assert taken is not None
    assert taken["spec"]["ports"][0]["port"] == 1
    events = f"/api/v1/namespaces/{world.namespace}/events"
    (event,) = (await world.client.get(events, fieldSelector="reason=NameTaken"))["items"]
    assert "Service job-taken" in event["message"]

    # They are made again, changed, and taken away, and no PE minds.
    launched = await _launches(world)
    await world.client.delete(SERVICE.path(world.namespace, "job-api"))
    again = await world.eventually(SERVICE, "job-api", bool)
    assert again["metadata"]["uid"] != service["metadata"]["uid"]
    await world.client.patch(
        HOST_POOL.path(world.namespace, "job-fast"), {"spec": {"tags": ["hdd"]}}
    )
    await world.eventually(HOST_POOL, "job-fast", lambda item: item["spec"]["tags"] == ["ssd"])  # type: ignore[index]
    await world.upload(declared(81, hostPools=[]))
    await world.eventually(
        SERVICE, "job-api", lambda item: item and item["spec"]["ports"][0]["port"] == 81
    )
    await world.eventually(HOST_POOL, "job-fast", lambda item: item is None)
    assert await _launches(world) == launched

    await world.client.delete(JOB.path(world.namespace, "job"))
    await world.eventually(SERVICE, "job-api", lambda item: item is None)
    await world.eventually(JOB, "job", lambda item: item is None)
    assert await world.get(SERVICE, "job-taken")


async def _launches(world: World) -> dict[str, int]:
    """Return how often each PE was launched, once all of them were."""
    async with asyncio.timeout(30):
        while True:
            found = (await world.client.get(PROCESSING_ELEMENT.path(world.namespace)))["items"]
            if all("launchCount" in item.get("status", {}) for item in found):
                break
            await asyncio.sleep(0.05)
    return {item["metadata"]["name"]: item["status"]["launchCount"] for item in found}
