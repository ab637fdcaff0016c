"""The check of pod templates and the API server's own pod security admission say the same."""

from typing import Any

import pytest
from tests.operator.integration.world import World, application, bundle, condition
from tests.operator.manifests.pod_templates import ALLOWED, FORBIDDEN
from tests.operator.manifests.test_manifests import IN_CONFIG_MAP, pod

from streamgraft_common.kinds import POD
from streamgraft_common.kube import ApiError
from streamgraft_operator.manifests.pod_security import with_defaults
from streamgraft_operator.manifests.template import merged

pytestmark = pytest.mark.integration


async def _enforce(world: World) -> None:
    labels = {
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/enforce-version": "latest",
    }
    path = f"/api/v1/namespaces/{world.namespace}"
    await world.client.patch(path, {"metadata": {"labels": labels}})


async def _admits(world: World, manifest: dict[str, Any]) -> bool:
    try:
        await world.client.create(POD.path(world.namespace), manifest, dryRun="All")
    except ApiError as error:
        # The cluster of the tests allows no privileged containers anywhere.
        words = ("violates PodSecurity", "privileged: Forbidden: disallowed by cluster policy")
        if not any(each in error.message for each in words):
            raise
        return False
    return True


def _manifest(template: dict[str, Any]) -> dict[str, Any]:
    found = merged(template, {"spec": {"containers": [{"name": "pe", "image": "pe:1"}]}})
    spec = with_defaults(found["spec"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pe"}, "spec": spec}


async def test_the_same_templates_are_allowed(world: World) -> None:
    await _enforce(world)
    for name, template in ALLOWED.items():
        assert await _admits(world, _manifest(template)), name
    for name, template in FORBIDDEN.items():
        assert not await _admits(world, _manifest(template)), name


async def test_pods_of_pes_are_admitted(world: World) -> None:
    await _enforce(world)
    manifest = pod(IN_CONFIG_MAP, {})
    metadata = {**manifest["metadata"], "namespace": world.namespace}
    del metadata["ownerReferences"]
    spec = {**manifest["spec"], "serviceAccountName": "default"}
    assert await _admits(world, {**manifest, "metadata": metadata, "spec": spec})


@pytest.mark.usefixtures("operator")
async def test_a_job_with_too_much_is_refused(world: World, source_topic: str) -> None:
    await world.upload(bundle(application(world.namespace)))
    await world.submit(processingElement={"podTemplate": FORBIDDEN["host-path"]})
    job = await world.job(lambda status: condition({"status": status}, "Accepted"))
    accepted = condition(job, "Accepted")
    assert accepted["reason"] == "PodForbidden"
    assert "volume root of type hostPath" in accepted["message"]
    assert await world.names(POD) == []
