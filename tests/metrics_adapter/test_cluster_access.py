"""Who may call the adapter: real TLS, the real authority of the cluster, and forgeries."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from streamgraft_common.kube import KubeClient
from streamgraft_local import Cluster, pki
from streamgraft_metrics_adapter.custom_metrics import GROUP

pytestmark = pytest.mark.integration

NO_HEADERS: Mapping[str, str] = {}
PROXY_HEADERS = {"X-Remote-User": "somebody", "X-Remote-Group": "system:masters"}
DISCOVERY = f"/apis/{GROUP}/v1beta2"
METRIC = f"{DISCOVERY}/namespaces/default/parallelregions.streamgraft.io/nobody/demand"


@dataclass(frozen=True)
class Caller:
    """Calls the adapter straight; `certificate`: stem of two files."""

    cluster: Cluster

    def get(
        self, path: str, certificate: Path | None = None, headers: Mapping[str, str] = NO_HEADERS
    ) -> requests.Response:
        """Send a GET request."""
        return self.send("GET", path, certificate, headers=headers)

    def put(self, path: str, certificate: Path, body: Any) -> requests.Response:
        """Send JSON with a PUT request."""
        return self.send("PUT", path, certificate, json=body)

    def send(
        self, method: str, path: str, certificate: Path | None, **options: Any
    ) -> requests.Response:
        """Send a request; the server's chain and name are verified."""
        return requests.request(
            method,
            self.cluster.adapter_url + path,
            cert=(f"{certificate}.crt", f"{certificate}.key") if certificate else None,
            verify=str(self.cluster.home.pki / "ca.crt"),
            timeout=30,
            **options,
        )


@pytest.fixture
def caller(cluster: Cluster) -> Caller:
    """A caller of the shared environment's adapter."""
    return Caller(cluster)


def signer(cluster: Cluster, name: str) -> pki.Issued:
    """Return one of the cluster's authorities."""
    folder = cluster.home.pki
    key = load_pem_private_key((folder / f"{name}.key").read_bytes(), None)
    certificate = x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())
    return pki.Issued(key, certificate)  # type: ignore[arg-type]


def issued(folder: Path, authority: pki.Issued, name: str) -> Path:
    """Return the stem of a new client certificate."""
    pki.issue(authority, name).save(folder, "client")
    return folder / "client"


def test_health_is_open(caller: Caller) -> None:
    assert [caller.get(path).status_code for path in ("/healthz", "/livez")] == [200, 200]


def test_nobody_gets_a_status_and_no_metric(caller: Caller) -> None:
    answer = caller.get(METRIC)
    assert answer.status_code == 401
    assert (answer.json()["kind"], answer.json()["reason"]) == ("Status", "Unauthorized")


def test_headers_alone_name_nobody(caller: Caller) -> None:
    assert caller.get(METRIC, headers=PROXY_HEADERS).status_code == 401


def test_front_proxy_is_believed(caller: Caller) -> None:
    proxy = caller.cluster.home.pki / "front-proxy"
    answer = caller.get(METRIC, certificate=proxy, headers=PROXY_HEADERS)
    # system:masters may read it; there is no such region.
    assert answer.status_code == 404
    stranger = {"X-Remote-User": "somebody"}
    assert caller.get(DISCOVERY, certificate=proxy, headers=stranger).status_code == 200
    assert caller.get(METRIC, certificate=proxy, headers=stranger).status_code == 403


def test_front_proxy_authority_but_another_name(caller: Caller, tmp_path: Path) -> None:
    other = issued(tmp_path, signer(caller.cluster, "front-proxy-ca"), "another")
    assert caller.get(METRIC, certificate=other, headers=PROXY_HEADERS).status_code == 401


def test_user_certificate_does_not_make_a_front_proxy(caller: Caller, tmp_path: Path) -> None:
    """Even with the proxy's name: it counts as the user of that name, whatever the headers say."""
    user = issued(tmp_path, signer(caller.cluster, "ca"), pki.FRONT_PROXY)
    answer = caller.get(METRIC, certificate=user, headers=PROXY_HEADERS)
    assert answer.status_code == 403
    assert f'User "{pki.FRONT_PROXY}"' in answer.json()["message"]


def test_foreign_authority_fails_the_handshake(caller: Caller, tmp_path: Path) -> None:
    foreign = issued(tmp_path, pki.authority("foreign"), pki.FRONT_PROXY)
    with pytest.raises(requests.exceptions.RequestException) as caught:
        caller.get(METRIC, certificate=foreign, headers=PROXY_HEADERS)
    assert isinstance(caught.value, requests.exceptions.ConnectionError | ssl.SSLError)


async def test_token_of_a_service_account(caller: Caller, kube: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = (await kube.create(path, body))["status"]["token"]
    assert caller.get(DISCOVERY, headers={"Authorization": f"Bearer {token}"}).status_code == 200
    denied = caller.get(METRIC, headers={"Authorization": f"Bearer {token}"})
    assert denied.status_code == 403
    assert f"system:serviceaccount:{namespace}:default" in denied.json()["message"]
    assert caller.get(DISCOVERY, headers={"Authorization": f"Bearer {token}x"}).status_code == 401


async def test_rest(caller: Caller, region: Any, until: Any) -> None:
    """Explanations, history, and the width through /scale."""
    admin = caller.cluster.home.pki / "admin"
    path = f"/api/v1/namespaces/{region.namespace}/regions/flights-enrich"

    async def explained() -> bool:
        # The adapter hears of a new region a moment later.
        answer = caller.get(path, certificate=admin)
        return answer.status_code == 200 and "value" in answer.json()["signals"]["demand"]

    await until(explained, 120)
    answer = caller.get(path, certificate=admin).json()
    assert answer["width"] == 1
    assert answer["signals"]["demand"]["inputs"]["policy"]["max_width"] == 4

    async def remembered() -> bool:
        history = caller.get(f"{path}/history", certificate=admin).json()["items"]
        return bool(history) and history[-1]["signals"]["demand"] == pytest.approx(1.0)

    await until(remembered, 30)
    scale = f"{path}/scale"
    assert caller.put(scale, admin, {"width": 3}).json() == {"width": 3, "serving": 1}
    assert (await region.kube.get(region.path))["spec"]["width"] == 3
    refused = caller.put(scale, admin, {"width": 9})
    assert (refused.status_code, refused.json()["reason"]) == (422, "Invalid")
    assert [caller.put(scale, admin, {"width": bad}).status_code for bad in (0, "two", 1.5)] == (
        [422, 422, 422]
    )
