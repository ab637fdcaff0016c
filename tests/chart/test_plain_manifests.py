"""The commands of docs/operate/install.md for those who have no Helm."""

import base64
import re
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.chart.helm import NAMESPACE
from tests.chart.release import api_services, left_over, pods_are_restricted

from streamgraft_common.kube import KubeClient, load_config
from streamgraft_local.components.model import Setting
from streamgraft_local.resources import definitions

Object = dict[str, Any]
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/operate/install.md"


def written(folder: Path) -> list[Object]:
    """Follow the page; return what the manifest has then. The certificate is in the folder, too."""
    section = PAGE.read_text().partition("## Without Helm")[2]
    (commands,) = re.findall(r"```sh\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    (folder / "deploy").symlink_to(ROOT / "deploy")
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], cwd=folder, check=True, capture_output=True
    )
    return list(yaml.safe_load_all((folder / "streamgraft.yaml").read_text()))


def test_certificate_is_what_the_api_server_asks_for(tmp_path: Path) -> None:
    """It is of the Service's name, fits its key, and is in each APIService."""
    items = written(tmp_path)
    services = [item["spec"] for item in items if item["kind"] == "APIService"]
    assert len(services) == 3
    for spec in services:
        authority = base64.b64decode(spec["caBundle"]).decode()
        host = f"{spec['service']['name']}.{spec['service']['namespace']}.svc"
        assert shakes_hands(tmp_path, authority, host)


@pytest.mark.integration
async def test_the_manifests_are_applied_and_deleted(api_server: Setting, tmp_path: Path) -> None:
    """In the order of the page, by the requests of `kubectl apply --server-side`; pods of the
    restricted standard are admitted, and nothing but the definitions stays."""
    folder = tmp_path / "page"
    folder.mkdir()
    items = written(folder)
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace"}
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace["metadata"] = {"name": NAMESPACE, "labels": label}
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount"}
    account["metadata"] = {"name": "default", "namespace": NAMESPACE}
    async with KubeClient(load_config(api_server.home.kubeconfig("admin"))) as client:
        # A controller that does not run here makes the account.
        for item in (*definitions(), namespace, account, *items):
            path = await path_of(client, item)
            await client.apply(path, item, "page", fieldValidation="Strict")
        assert len(await api_services(client)) == 3
        await pods_are_restricted(client, {"operator", "metrics-adapter"})
        for item in items:
            await client.delete(await path_of(client, item))
        assert await left_over(client) == []


async def path_of(client: KubeClient, item: Object) -> str:
    """Return an object's path, as the API server tells it."""
    version = item["apiVersion"]
    group = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    (found,) = (
        resource
        for resource in (await client.get(group))["resources"]
        if resource["kind"] == item["kind"] and "/" not in resource["name"]
    )
    metadata = item["metadata"]
    inside = f"/namespaces/{metadata['namespace']}" if found["namespaced"] else ""
    return f"{group}{inside}/{found['name']}/{metadata['name']}"


def shakes_hands(folder: Path, authority: str, host: str) -> bool:
    """Return whether a client that trusts the authority takes the server for this host."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    client = ssl.create_default_context(cadata=authority)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    done = set[int]()
    for number in (0, 1, 0, 1, 0, 1):
        try:
            ends[number].do_handshake()
        except ssl.SSLWantReadError:
            continue
        done.add(number)
    return done == {0, 1}
