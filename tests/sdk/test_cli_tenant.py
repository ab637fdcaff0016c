"""What people with a role in one namespace do, before the real API server and adapter."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from streamgraft.cli._app import app
from streamgraft_common import names
from streamgraft_common.access import SYSTEM_NAMESPACE
from streamgraft_common.kube import KubeClient
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_local import Cluster

pytestmark = pytest.mark.integration

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SECONDS = 60.0


async def bind(kube: KubeClient, space: str, kind: str, role: str, account: str) -> None:
    """Bind a role in a namespace to the account `default` of another one."""
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": account}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    body = {"metadata": {"name": account}, "roleRef": reference, "subjects": [subject]}
    await kube.create(f"{RBAC}/namespaces/{space}/rolebindings", body)


@pytest.fixture
async def kubeconfig(
    cluster: Cluster, kube: KubeClient, namespace: str, tmp_path: Path
) -> Callable[[str], Awaitable[Path]]:
    """The kubeconfig of somebody to whom a ClusterRole is bound in the test's namespace."""

    async def of(role: str) -> Path:
        await bind(kube, namespace, "ClusterRole", role, namespace)
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
        token = (await kube.create(path, {"spec": {}}))["status"]["token"]
        config: dict[str, Any] = yaml.safe_load(cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        file = tmp_path / "kubeconfig"
        file.write_text(yaml.safe_dump(config))
        return file

    return of


@pytest.mark.parametrize("role", ["streamgraft-view", "view"])
async def test_who_may_look_sees_why_a_region_is_as_wide_as_it_is(
    kube: KubeClient, namespace: str, kubeconfig: Any, role: str
) -> None:
    """And gets a link to the console; neither takes a right outside of the namespace."""
    spec = {"job": "j", "region": "r", "width": 1, "maxWidth": 4, "key": ["k"]}
    path = PARALLEL_REGION.path(namespace)
    await kube.create(path, PARALLEL_REGION.manifest("j-r", namespace, spec))
    file = await kubeconfig(role)

    def ran(*arguments: str) -> Result:
        options = ("--kubeconfig", str(file), "-n", namespace)
        return CliRunner().invoke(app, [*options, *arguments])

    async with asyncio.timeout(SECONDS):
        # The API server's and the adapter's own caches hear of binding and region a moment later.
        while (told := await asyncio.to_thread(ran, "explain", "region", "j-r")).exit_code:
            await asyncio.sleep(0.3)
    assert told.output.startswith("Region j-r: width 1 wanted")
    absent = await asyncio.to_thread(ran, "explain", "region", "nobody")
    assert absent.output.startswith(f"error: no region nobody in namespace {namespace} of context ")
    await kube.delete(f"{path}/j-r")


async def test_a_link_to_the_console_takes_no_right_of_the_cluster(
    cluster: Cluster, namespace: str, kubeconfig: Any
) -> None:
    """The adapter's certificate is known to everybody; a forwarded port is another matter."""
    arguments = ["--kubeconfig", str(await kubeconfig("streamgraft-view")), "console"]
    url = cluster.adapter_url
    link = await asyncio.to_thread(CliRunner().invoke, app, [*arguments, "--adapter", url])
    assert link.output.startswith(f"{url}/console/#ticket="), link.output
    unsaid = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert "the Role streamgraft-console" in unsaid.output


async def test_the_role_for_the_console_is_what_forwarding_a_port_takes(
    kube: KubeClient, namespace: str
) -> None:
    """What kubectl asks for: the Service, a pod behind it, and the connection, by either way."""
    await bind(kube, SYSTEM_NAMESPACE, "Role", "streamgraft-console", namespace)

    async def may(verb: str, resource: str, subresource: str = "", name: str = "") -> bool:
        wanted = {"namespace": SYSTEM_NAMESPACE, "verb": verb, "resource": resource}
        spec = {
            "user": f"system:serviceaccount:{namespace}:default",
            "resourceAttributes": {**wanted, "subresource": subresource, "name": name},
        }
        return bool((await kube.create(REVIEWS, {"spec": spec}))["status"]["allowed"])

    async with asyncio.timeout(SECONDS):
        while not await may("get", "services", name=names.ADAPTER):
            await asyncio.sleep(0.1)
    for verb in ("create", "get"):
        assert await may(verb, "pods", "portforward", "any")
    for verb in ("get", "list"):
        assert await may(verb, "pods")
    assert not await may("get", "services", name="streamgraft-kafka")
    assert not await may("create", "pods", "exec", "any")
    assert not await may("get", "secrets", name="streamgraft-ca")
    await kube.delete(f"{RBAC}/namespaces/{SYSTEM_NAMESPACE}/rolebindings/{namespace}")
