"""The width by REST: the real API server authorizes and admits it, as a write of the caller."""

from dataclasses import dataclass
from typing import Any

import pytest
import requests

from streamgraft_common.kube import ApiError, KubeClient
from streamgraft_local import Cluster

pytestmark = pytest.mark.integration

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class Tenant:
    """A service account; the adapter is called straight, with its token."""

    cluster: Cluster
    namespace: str
    token: str

    def put(self, width: Any) -> requests.Response:
        """Ask for a width of the region."""
        return requests.put(
            f"{self.cluster.adapter_url}/api/v1/namespaces/{self.namespace}"
            "/regions/flights-enrich/scale",
            json={"width": width},
            headers={"Authorization": f"Bearer {self.token}"},
            verify=str(self.cluster.home.pki / "ca.crt"),
            timeout=30,
        )


async def tenant(cluster: Cluster, kube: KubeClient, namespace: str, name: str) -> Tenant:
    """Return a new service account that may do nothing yet."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await kube.create(accounts, {"metadata": {"name": name}})
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = (await kube.create(f"{accounts}/{name}/token", body))["status"]["token"]
    return Tenant(cluster, namespace, token)


async def allow(kube: KubeClient, namespace: str, *verbs: str) -> None:
    """Let all service accounts of the namespace do this with the width of regions."""
    rule = {
        "apiGroups": ["streamgraft.io"],
        "resources": ["parallelregions/scale"],
        "verbs": list(verbs),
    }
    roles = f"{RBAC}/namespaces/{namespace}"
    await kube.create(f"{roles}/roles", {"metadata": {"name": "scale"}, "rules": [rule]})
    group = f"system:serviceaccounts:{namespace}"
    subject = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": group}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "scale"}
    binding = {"metadata": {"name": "scale"}, "roleRef": reference, "subjects": [subject]}
    await kube.create(f"{roles}/rolebindings", binding)


async def test_who_may_not_scale_is_refused(
    cluster: Cluster, kube: KubeClient, region: Any, until: Any
) -> None:
    reader = await tenant(cluster, kube, region.namespace, "reader")
    await allow(kube, region.namespace, "get")
    refused = reader.put(3)
    assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")
    assert "update resource" in refused.json()["message"]
    role = f"{RBAC}/namespaces/{region.namespace}/roles/scale"
    await kube.patch(role, {"rules": [{**(await kube.get(role))["rules"][0], "verbs": ["update"]}]})

    async def written() -> bool:
        answer = reader.put(3)
        return answer.status_code == 200 and answer.json() == {"width": 3, "serving": 1}

    await until(written, 60)
    assert (await kube.get(region.path))["spec"]["width"] == 3
    too_wide = reader.put(9)
    assert (too_wide.status_code, too_wide.json()["reason"]) == (422, "Invalid")
    assert [reader.put(bad).status_code for bad in (0, "two", 1.5)] == [422, 422, 422]


async def test_admission_sees_the_caller(
    cluster: Cluster, kube: KubeClient, region: Any, until: Any
) -> None:
    """A policy of the API server that lets one account write and no other."""
    namespace = region.namespace
    await allow(kube, namespace, "get", "update")
    first = await tenant(cluster, kube, namespace, "first")
    second = await tenant(cluster, kube, namespace, "second")
    account = f"system:serviceaccount:{namespace}:first"
    name = f"first-only-{namespace}"
    rule = {
        "apiGroups": ["streamgraft.io"],
        "apiVersions": ["*"],
        "resources": ["parallelregions/scale"],
        "operations": ["UPDATE"],
    }
    policy = {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": f"request.userInfo.username == '{account}'"}],
        },
    }
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding = {
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": selector},
        },
    }
    policies = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
    for kind, body in zip(policies, (policy, binding), strict=True):
        await kube.create(f"{ADMISSION}/{kind}", body)
    try:

        async def denied() -> bool:
            # The API server's own caches hear of the role and the policy a moment later.
            answer = second.put(3)
            return answer.status_code == 422 and name in answer.json()["message"]

        await until(denied, 60)
        assert first.put(2).json() == {"width": 2, "serving": 1}
        assert (await kube.get(region.path))["spec"]["width"] == 2
    finally:
        for kind in policies:
            await deleted(kube, f"{ADMISSION}/{kind}/{name}")


async def deleted(kube: KubeClient, path: str) -> None:
    """Delete an object, if it is there."""
    try:
        await kube.delete(path)
    except ApiError as error:
        if error.code != 404:
            raise
