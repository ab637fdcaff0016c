"""What an installed release of the chart has in the API server."""

import json
from typing import Any

from tests.chart.helm import NAMESPACE

from streamgraft_common.kube import KubeClient

Object = dict[str, Any]


async def api_services(client: KubeClient) -> list[Object]:
    """Return the API services that our adapter serves."""
    listing = await client.get("/apis/apiregistration.k8s.io/v1/apiservices")
    return [
        item
        for item in listing["items"]
        if (item["spec"].get("service") or {}).get("namespace") == NAMESPACE
    ]


async def left_over(client: KubeClient) -> list[str]:
    """Return what has our label, definitions aside."""
    found = [item["metadata"]["name"] for item in await api_services(client)]
    inside = f"namespaces/{NAMESPACE}"
    for path in (
        f"/apis/apps/v1/{inside}/deployments",
        f"/apis/apps/v1/{inside}/statefulsets",
        f"/api/v1/{inside}/configmaps",
        f"/api/v1/{inside}/services",
        f"/api/v1/{inside}/secrets",
        f"/api/v1/{inside}/serviceaccounts",
        f"/apis/policy/v1/{inside}/poddisruptionbudgets",
        f"/apis/networking.k8s.io/v1/{inside}/networkpolicies",
        f"/apis/rbac.authorization.k8s.io/v1/{inside}/roles",
        "/api/v1/serviceaccounts",
        "/apis/coordination.k8s.io/v1/leases",
        "/apis/rbac.authorization.k8s.io/v1/rolebindings",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    ):
        items = (await client.get(path))["items"]
        names = (item["metadata"]["name"] for item in items)
        found += [f"{path}/{name}" for name in names if name.startswith("streamgraft")]
    return found


async def pods_are_restricted(client: KubeClient, programs: set[str]) -> None:
    """Admission takes pods of all programs in a namespace of the restricted standard."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}"
    listings = [await client.get(f"{path}/{kind}") for kind in ("deployments", "statefulsets")]
    found = [item for listing in listings for item in listing["items"]]
    assert {item["metadata"]["name"] for item in found} == {f"streamgraft-{x}" for x in programs}
    for item in found:
        template = json.loads(json.dumps(item["spec"]["template"]))
        template["metadata"]["name"] = "tried"
        for claim in item["spec"].get("volumeClaimTemplates", []):
            volume = {"name": claim["metadata"]["name"], "emptyDir": {}}
            template["spec"]["volumes"].append(volume)
        await client.create(f"/api/v1/namespaces/{NAMESPACE}/pods", template, dryRun="All")
