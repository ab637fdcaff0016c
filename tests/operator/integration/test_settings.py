"""What a job's settings do to what runs: missing references, live changes, policies, roll-back."""

import base64
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests.operator.integration.world import World, application, bundle, condition

from streamgraft_common.kinds import CONFIG_MAP, EVENT, PERSISTENT_VOLUME_CLAIM, POD, SECRET
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import HOST_POOL, JOB, PROCESSING_ELEMENT

UNSCHEDULABLE = {"resources": {"requests": {"cpu": "1000"}}}
"""Keeps schedulers from pods that are played by hand."""

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("operator", "player", "source_topic"),
]


async def secret(world: World, name: str, **values: str) -> None:
    """Create a Secret."""
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    manifest = {"metadata": {"name": name}, "data": data}
    await world.client.create(SECRET.path(world.namespace), manifest)


def _all_found(job: Object | None) -> bool:
    return condition(job or {}, "ReferencesFound").get("status") == "True"


async def edit(world: World, spec: Object) -> None:
    """Edit the job."""
    await world.client.patch(JOB.path(world.namespace, "job"), {"spec": spec})


async def test_what_is_missing_is_named_and_awaited(world: World) -> None:
    """A host pool, a secret and a volume claim."""
    adl = application(world.namespace)
    adl["operators"][0]["placement"] = {"hostPool": "gpus"}
    await world.upload(bundle(adl))
    names = {"appPropertiesSecret": "keys", "dataVolumeClaim": {"name": "data"}}
    await world.submit(processingElement=names | UNSCHEDULABLE)
    job = await world.job(lambda status: "Secret keys" in status.get("message", ""))
    assert "HostPool gpus (placement)" in job["status"]["message"]
    assert "PersistentVolumeClaim data (dataVolumeClaim)" in job["status"]["message"]
    found = condition(job, "ReferencesFound")
    assert (found["status"], found["reason"]) == ("False", "ReferenceMissing")
    assert found["observedGeneration"] == job["metadata"]["generation"]
    assert await world.names(POD) == []
    events = (await world.client.get(EVENT.path(world.namespace)))["items"]
    assert "ReferenceMissing" in {event["reason"] for event in events}

    await secret(world, "keys", user="me")
    request = {"requests": {"storage": "1Mi"}}
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": request},
    }
    await world.client.create(PERSISTENT_VOLUME_CLAIM.path(world.namespace), claim)
    pool = HOST_POOL.manifest("gpus", world.namespace, {"nodeSelector": {"kind": "gpu"}})
    await world.client.create(HOST_POOL.path(world.namespace), pool)
    job = await world.eventually(JOB, "job", _all_found)
    assert job["status"]["phase"] == "Submitted"


async def test_live_settings_restart_nothing_and_others_only_their_pe(world: World) -> None:
    await world.upload(bundle(application(world.namespace)))
    await world.submit()
    await world.job_in("Healthy")
    before = await world.uids()

    await edit(world, {"processingElement": {"runtimeTraceLevel": "DEBUG"}})
    for pe in ("job-0", "job-2"):
        item = await world.pe(pe, lambda item: item["spec"]["inherited"].get("runtimeTraceLevel"))
        assert item["status"]["launchCount"] == 1
    path = PROCESSING_ELEMENT.path(world.namespace, "job-0")
    await world.client.patch(path, {"spec": {"settings": {"heapMb": 500}}})
    item = await world.pe("job-0", lambda item: item["status"]["launchCount"] == 2)
    assert item["status"]["launchReason"] == "SettingsChanged"
    await world.eventually(POD, "job-0-1", lambda pod: pod is None)
    await world.eventually(POD, "job-0-2", lambda pod: pod is not None)
    after = await world.uids()
    assert before.items() - after.items() == {("job-0-1", before["job-0-1"])}


async def test_failed_pod_is_followed_by_another_as_the_policy_says(world: World) -> None:
    policies = {"restartFailedPod": False, "deleteFailedPod": False}
    await world.upload(bundle(application(world.namespace)))
    await world.submit(processingElement=policies | UNSCHEDULABLE)
    await world.job_in("Healthy")

    pod = POD.path(world.namespace, "job-0-1")
    await world.client.patch(f"{pod}/status", {"status": {"phase": "Failed"}})
    item = await world.pe("job-0", lambda item: item["status"].get("stopped"))
    assert item["status"]["phase"] == "Failed"
    assert "restartFailedPod" in item["status"]["message"]
    assert condition(item, "Ready")["status"] == "False"
    assert "job-0-1" in await world.names(POD)

    await edit(world, {"processingElement": {"restartFailedPod": True}})
    item = await world.pe("job-0", lambda item: item["status"]["phase"] == "Running")
    assert item["status"]["launchCount"] == 2
    assert {"job-0-1", "job-0-2"} <= set(await world.names(POD))


async def test_submission_that_takes_too_long_is_rolled_back_and_repeated(world: World) -> None:
    quotas = f"/api/v1/namespaces/{world.namespace}/resourcequotas"
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"count/services": "1"}}}
    await world.client.create(quotas, quota)
    await world.upload(bundle(application(world.namespace)))
    await world.submit(submissionTimeoutSeconds=1)
    job = await world.job(lambda status: status.get("failedSubmissions", 0) > 0)
    assert job["status"].get("submittedGeneration", 0) == 0
    assert await world.get(CONFIG_MAP, "bundle")

    await world.client.delete(f"{quotas}/few")
    job = await world.job_in("Healthy")
    assert job["status"]["submittedGeneration"] == job["metadata"]["generation"]


@pytest.fixture
async def shelf(world: World) -> AsyncIterator[str]:
    """The address of a bundle, for those who have the token."""

    async def serve(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != "Bearer sesame":
            raise web.HTTPUnauthorized
        return web.Response(body=bundle(application(world.namespace)))

    served = web.Application()
    served.router.add_get("/tiny.zip", serve)
    runner = web.AppRunner(served)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/tiny.zip"
    await runner.cleanup()


async def test_bundle_by_url_with_a_secret_that_comes_late(world: World, shelf: str) -> None:
    await world.submit(bundle={"url": shelf, "secret": "token", "name": "tiny"})
    job = await world.job(lambda status: "no Secret token" in status.get("message", ""))
    assert condition(job, "Accepted")["reason"] == "BundleFetchFailed"

    await secret(world, "token", token="sesame", hosts="127.0.0.1")
    job = await world.job_in("Healthy")
    pod = await world.get(POD, "job-0-1")
    assert pod
    volumes = {item["name"]: item for item in pod["spec"]["volumes"]}
    assert volumes["bundle"]["configMap"]["name"] == "job-fetched"
