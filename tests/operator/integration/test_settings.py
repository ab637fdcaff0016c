"""What a job's settings do to what runs: missing references, live changes, policies, roll-back."""

import base64
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests.operator.integration.world import World, application, bundle, condition

from streamgraft_common.kinds import CONFIG_MAP, PERSISTENT_VOLUME_CLAIM, POD, SECRET, Kind
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
    await world.until(lambda: _told(world, "ReferenceMissing"))

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


async def _told(world: World, reason: str) -> bool:
    return reason in {event["reason"] for event in await world.events()}


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


@pytest.mark.parametrize(
    ("ended", "policy", "phase"),
    [
        ("Failed", "restartFailedPod", "Failed"),
        ("Succeeded", "restartCompletedPod", "Stopped"),
    ],
)
async def test_pod_that_ended_is_followed_by_another_as_the_policy_says(
    world: World, ended: str, policy: str, phase: str
) -> None:
    policies = {policy: False, "deleteFailedPod": False}
    await world.upload(bundle(application(world.namespace)))
    await world.submit(processingElement=policies | UNSCHEDULABLE)
    await world.job_in("Healthy")

    pod = POD.path(world.namespace, "job-0-1")
    await world.client.patch(f"{pod}/status", {"status": {"phase": ended}})
    item = await world.pe("job-0", lambda item: item["status"].get("stopped"))
    assert item["status"]["phase"] == phase
    assert policy in item["status"]["message"]
    assert condition(item, "Ready")["status"] == "False"
    assert "job-0-1" in await world.names(POD)

    await edit(world, {"processingElement": {policy: True}})
    item = await world.pe("job-0", lambda item: item["status"]["phase"] == "Running")
    assert item["status"]["launchCount"] == 2
    assert ("job-0-1" in await world.names(POD)) == (ended == "Failed")


async def test_deleted_pe_comes_back_even_if_it_is_not_restartable(world: World) -> None:
    """What a job declares is there; `restartable` is about failures of its pods only."""
    adl = application(world.namespace)
    adl["operators"][0]["restartable"] = False
    await world.upload(bundle(adl))
    await world.submit(processingElement=UNSCHEDULABLE)
    await world.job_in("Healthy")
    pe = await world.pe("job-0", lambda item: item["spec"]["restartable"] is False)
    await world.client.patch(
        f"{POD.path(world.namespace, 'job-0-1')}/status", {"status": {"phase": "Failed"}}
    )
    await world.pe("job-0", lambda item: item["status"].get("stopped"))
    await world.client.delete(PROCESSING_ELEMENT.path(world.namespace, "job-0"))
    again = await world.pe("job-0", lambda item: item["status"].get("phase") == "Running")
    assert again["metadata"]["uid"] != pe["metadata"]["uid"]
    assert again["status"]["launchReason"] == "Created"
    await world.job_in("Healthy")


async def limited(world: World, plural: str = "services") -> str:
    """Let nobody make a second one; return the path of what forbids it."""
    quotas = Kind("v1", "ResourceQuota", "resourcequotas")
    hard = {f"count/{plural}": "1"}
    quota = {"metadata": {"name": "few"}, "spec": {"hard": hard}}
    await world.client.create(quotas.path(world.namespace), quota)
    await world.eventually(quotas, "few", lambda item: item and item["status"]["used"])
    return quotas.path(world.namespace, "few")


async def test_submission_that_takes_too_long_is_rolled_back_and_repeated(world: World) -> None:
    quota = await limited(world)
    await world.upload(bundle(application(world.namespace)))
    await world.submit(submissionTimeoutSeconds=1)
    job = await world.job(lambda status: status.get("failedSubmissions", 0) > 0)
    assert job["status"].get("submittedGeneration", 0) == 0
    assert await world.get(CONFIG_MAP, "bundle")

    await world.client.delete(quota)
    job = await world.job_in("Healthy")
    assert job["status"]["submittedGeneration"] == job["metadata"]["generation"]


async def test_an_account_that_may_not_be_made_is_told_and_one_that_is_there_is_seen(
    world: World,
) -> None:
    """A namespace has an account from the beginning, so that a quota of one leaves no room."""
    quota = await limited(world, "serviceaccounts")
    await world.upload(bundle(application(world.namespace)))
    await world.submit()
    job = await world.job(lambda status: "exceeded quota" in status.get("message", ""))
    told = condition(job, "Accepted")
    assert (told["status"], told["reason"]) == ("False", "AccountRefused")
    assert await world.names(POD) == []
    await world.client.delete(quota)
    await world.job_in("Healthy")

    await limited(world, "serviceaccounts")
    await world.client.delete(JOB.path(world.namespace, "job"))
    await world.eventually(JOB, "job", lambda job: job is None)
    await world.submit("second")
    await world.job_in("Healthy", "second")


class Shelf:
    """A server of one bundle, for those who have the token."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.url = ""
        self.asked = 0

    async def serve(self, request: web.Request) -> web.Response:
        """Answer a request."""
        if request.headers.get("Authorization") != "Bearer sesame":
            raise web.HTTPUnauthorized
        self.asked += 1
        return web.Response(body=self.content)


@pytest.fixture
async def shelf(world: World) -> AsyncIterator[Shelf]:
    """The server of the job's bundle."""
    shelf = Shelf(bundle(application(world.namespace)))
    served = web.Application()
    served.router.add_get("/tiny.zip", shelf.serve)
    runner = web.AppRunner(served)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    shelf.url = f"http://127.0.0.1:{runner.addresses[0][1]}/tiny.zip"
    yield shelf
    await runner.cleanup()


async def test_bundle_by_url_with_a_secret_that_comes_late(world: World, shelf: Shelf) -> None:
    await world.submit(bundle={"url": shelf.url, "secret": "token", "name": "tiny"})
    job = await world.job(lambda status: "no Secret token" in status.get("message", ""))
    assert condition(job, "Accepted")["reason"] == "BundleFetchFailed"

    await secret(world, "token", token="sesame", hosts="127.0.0.1")
    job = await world.job_in("Healthy")
    pod = await world.get(POD, "job-0-1")
    assert pod
    volumes = {item["name"]: item for item in pod["spec"]["volumes"]}
    assert volumes["bundle"]["configMap"]["name"] == "job-fetched"


async def test_a_submission_with_a_fetched_bundle_is_repeated_too(
    world: World, shelf: Shelf
) -> None:
    """What was fetched goes with the rest; the server is asked once for each attempt."""
    quota = await limited(world)
    await secret(world, "token", token="sesame", hosts="127.0.0.1")
    await world.submit(bundle={"url": shelf.url, "secret": "token"}, submissionTimeoutSeconds=1)
    await world.job(lambda status: status.get("failedSubmissions", 0) > 1)
    await world.client.delete(quota)
    job = await world.job_in("Healthy")
    assert shelf.asked == job["status"]["failedSubmissions"] + 1


@pytest.mark.parametrize(("policy", "fetched"), [("IfNotPresent", 1), ("Always", 2)])
async def test_pull_policy(world: World, shelf: Shelf, policy: str, fetched: int) -> None:
    """An edit of something else fetches the bundle again if it is to be fetched always."""
    await secret(world, "token", token="sesame", hosts="127.0.0.1")
    source = {"url": shelf.url, "secret": "token", "pullPolicy": policy}
    await world.submit(bundle=source)
    before = await world.job_in("Healthy")
    assert shelf.asked == 1

    shelf.content = bundle(application(world.namespace, parameters={"speed": "1", "more": "2"}))
    await edit(world, {"parameters": {"speed": "3"}})
    digest = before["status"]["bundleDigest"]
    await world.job(
        lambda status: (
            (status.get("phase"), status["observedGeneration"]) == ("Healthy", 2)
            and (status["bundleDigest"] != digest) == (policy == "Always")
        )
    )
    assert shelf.asked == fetched
