"""What an installed release of the chart has in the API server."""

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
