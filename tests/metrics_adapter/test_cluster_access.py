"""Who may call the adapter: real TLS, the real authority of the cluster, and forgeries."""

import socket
import ssl
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from requests.adapters import HTTPAdapter

from streamgraft_common.kube import KubeClient
from streamgraft_local import Cluster, pki
from streamgraft_metrics_adapter.access.authorities import NAME, NAMESPACE
from streamgraft_metrics_adapter.access.connections import PER_ADDRESS
from streamgraft_metrics_adapter.api.custom_metrics import GROUP

pytestmark = pytest.mark.integration

NO_HEADERS: Mapping[str, str] = {}
PROXY_HEADERS = {"X-Remote-User": "somebody", "X-Remote-Group": "system:masters"}
DISCOVERY = f"/apis/{GROUP}/v1beta2"
SERVING = ("adapter-serving.crt", "adapter-serving.key")
METRIC = f"{DISCOVERY}/namespaces/default/parallelregions.streamgraft.io/nobody/demand"


@dataclass(frozen=True)
class Caller:
    """Calls the adapter straight; `certificate`: stem of two files."""

    cluster: Cluster

    def get(
        self,
        path: str,
        certificate: Path | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        url: str | None = None,
    ) -> requests.Response:
        """Send a GET request, to the adapter unless another URL is given."""
        return self.send("GET", path, certificate, url, headers=headers)

    def send(
        self,
        method: str,
        path: str,
        certificate: Path | None,
        url: str | None = None,
        **options: Any,
    ) -> requests.Response:
        """Send a request; the server's chain and name are verified."""
        return requests.request(
            method,
            (url or self.cluster.adapter_url) + path,
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


def test_expired_front_proxy_fails_the_handshake(caller: Caller, tmp_path: Path) -> None:
    authority = signer(caller.cluster, "front-proxy-ca")
    valid = pki.issue(authority, pki.FRONT_PROXY)
    yesterday = datetime.now(UTC) - timedelta(days=1)
    expired = (
        x509.CertificateBuilder()
        .subject_name(valid.certificate.subject)
        .issuer_name(authority.certificate.subject)
        .public_key(valid.key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(yesterday - timedelta(days=1))
        .not_valid_after(yesterday)
        .sign(authority.key, hashes.SHA256())
    )
    pki.Issued(valid.key, expired).save(tmp_path, "client")
    with pytest.raises(requests.exceptions.RequestException):
        caller.get(METRIC, certificate=tmp_path / "client", headers=PROXY_HEADERS)


def test_front_proxy_is_believed(caller: Caller) -> None:
    proxy = caller.cluster.home.pki / "front-proxy"
    answer = caller.get(METRIC, certificate=proxy, headers=PROXY_HEADERS)
    # system:masters may read it; there is no such region.
    assert answer.status_code == 404
    user = {"X-Remote-User": "somebody"}
    assert caller.get(DISCOVERY, certificate=proxy, headers=user).status_code == 200
    assert caller.get(METRIC, certificate=proxy, headers=user).status_code == 403


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


async def test_tenant_of_one_namespace(
    caller: Caller, kube: KubeClient, namespace: str, tmp_path: Path, until: Any
) -> None:
    """A Role in one namespace gives that one, straight and through the aggregator, and no other."""
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {
        "apiGroups": [GROUP],
        "resources": ["parallelregions.streamgraft.io/demand"],
        "verbs": ["get"],
    }
    await kube.create(f"{roles}/roles", {"metadata": {"name": "demand"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "demand"}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "tenant"}
    binding = {"metadata": {"name": "demand"}, "roleRef": reference, "subjects": [subject]}
    await kube.create(f"{roles}/rolebindings", binding)
    tenant = issued(tmp_path, signer(caller.cluster, "ca"), "tenant")

    def codes(url: str) -> list[int]:
        regions = f"{DISCOVERY}/namespaces/{{}}/parallelregions.streamgraft.io/nobody"
        paths = (
            f"{regions.format(namespace)}/demand",
            f"{regions.format(namespace)}/utilization",
            f"{regions.format('default')}/demand",
            f"/api/v1/namespaces/{namespace}/regions/nobody/scale",
        )
        return [caller.get(path, certificate=tenant, url=url).status_code for path in paths]

    async def is_tenant() -> bool:
        # The API server's own caches hear of the role a moment later.
        return codes(caller.cluster.adapter_url)[0] == codes(caller.cluster.api_url)[0] == 404

    # There is no such region: who may read it hears so.
    await until(is_tenant, 30)
    assert codes(caller.cluster.adapter_url) == [404, 403, 403, 403]
    assert codes(caller.cluster.api_url)[:3] == [404, 403, 403]


async def test_rotated_front_proxy_authority(
    caller: Caller, kube: KubeClient, tmp_path: Path, until: Any
) -> None:
    """A further authority is believed once it is published, without a restart."""
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}"
    key = "requestheader-client-ca-file"
    before = (await kube.get(path))["data"][key]
    authority = pki.authority("front-proxy-next")
    proxy = issued(tmp_path, authority, pki.FRONT_PROXY)
    with pytest.raises(requests.exceptions.RequestException):
        caller.get(DISCOVERY, certificate=proxy, headers=PROXY_HEADERS)
    added = authority.certificate.public_bytes(Encoding.PEM).decode()

    async def believed() -> bool:
        # The API server sets the ConfigMap back to its own authorities from time to time.
        await kube.patch(path, {"data": {key: before + added}})
        try:
            answer = caller.get(DISCOVERY, certificate=proxy, headers=PROXY_HEADERS)
        except requests.exceptions.RequestException:
            return False
        return answer.status_code == 200

    async def forgotten() -> bool:
        await kube.patch(path, {"data": {key: before}})
        answer = caller.get(DISCOVERY, certificate=proxy, headers=PROXY_HEADERS)
        return answer.status_code == 401

    await until(believed, 30)
    await until(forgotten, 30)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 400_000, b""),
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400"),
        (b"GET /apis HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n", b"HTTP/1.1 413"),
    ],
    ids=["endless head", "no HTTP", "huge body"],
)
def test_requests_that_no_client_sends(cluster: Cluster, sent: bytes, expected: bytes) -> None:
    context = ssl.create_default_context(cafile=str(cluster.home.pki / "ca.crt"))
    address = ("127.0.0.1", int(cluster.adapter_url.rpartition(":")[2]))
    with (
        socket.create_connection(address, timeout=30) as plain,
        context.wrap_socket(plain, server_hostname=address[0]) as connection,
    ):
        try:
            connection.sendall(sent)
            answer = connection.recv(4096)
        except (ConnectionError, ssl.SSLError):
            answer = b""
    assert answer.startswith(expected)
    assert bool(answer) == bool(expected)


class FromElsewhere(HTTPAdapter):
    """Calls from another address of this machine, so that its limits are no other test's."""

    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Make connections from that address."""
        super().init_poolmanager(*arguments, **options, source_address=(self._address, 0))


async def test_unknown_tokens_are_limited_per_address(
    caller: Caller, kube: KubeClient, namespace: str
) -> None:
    """After twenty the API server is asked no more; who calls from elsewhere notices nothing."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    good = {"Authorization": f"Bearer {(await kube.create(path, body))['status']['token']}"}
    with requests.Session() as session:
        authority = str(caller.cluster.home.pki / "ca.crt")
        session.mount("https://", FromElsewhere("127.0.0.7"))

        def code(headers: Mapping[str, str]) -> int:
            url = caller.cluster.adapter_url + DISCOVERY
            return session.get(url, headers=headers, timeout=30, verify=authority).status_code

        assert code(good) == 200
        codes = [code({"Authorization": f"Bearer {uuid.uuid4()}"}) for _ in range(40)]
        assert codes[:20] == [401] * 20
        assert codes.count(429) >= 10
        assert code(good) == 200  # known by now
    assert caller.get(DISCOVERY, headers={"Authorization": "Bearer x"}).status_code == 401
    proxy = caller.cluster.home.pki / "front-proxy"
    assert caller.get(DISCOVERY, proxy, headers={"X-Remote-User": "a"}).status_code == 200


def test_idle_connections_keep_nobody_out(caller: Caller) -> None:
    """As many as one address may have and more, silent after their handshake or before it."""
    context = ssl.create_default_context(cafile=str(caller.cluster.home.pki / "ca.crt"))
    address = ("127.0.0.1", int(caller.cluster.adapter_url.rpartition(":")[2]))
    with ExitStack() as stack:
        for number in range(PER_ADDRESS * 3):
            plain = stack.enter_context(
                socket.create_connection(address, 30, source_address=("127.0.0.8", 0))
            )
            if number < PER_ADDRESS * 2:
                stack.enter_context(context.wrap_socket(plain, server_hostname=address[0]))
        test_health_is_open(caller)
        proxy = caller.cluster.home.pki / "front-proxy"
        assert caller.get(DISCOVERY, proxy, headers={"X-Remote-User": "a"}).status_code == 200


async def test_rest(caller: Caller, region: Any, until: Any) -> None:
    """Explanations, history, and the width."""
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
    assert caller.get(scale, certificate=admin).json() == {"width": 1, "serving": 1}
    # The write would not be the administrator's: a certificate can't be passed on.
    refused = caller.send("PUT", scale, admin, json={"width": 3})
    assert (refused.status_code, "bearer token" in refused.json()["message"]) == (403, True)
    assert (await region.kube.get(region.path))["spec"]["width"] == 1


async def test_renewed_serving_certificate(caller: Caller, until: Any) -> None:
    """The running adapter serves it within its next look at the files; the aggregator takes it."""
    folder = caller.cluster.home.pki
    address = ("127.0.0.1", int(caller.cluster.adapter_url.rpartition(":")[2]))
    # The API server calls the adapter by its host's name.
    hosts = [pki.ADAPTER_HOST, address[0]]
    fresh = pki.issue(signer(caller.cluster, "ca"), pki.ADAPTER_HOST, hosts=hosts)
    wanted = fresh.certificate.public_bytes(Encoding.PEM).decode()
    (folder / SERVING[1]).unlink()
    fresh.save(folder, "adapter-serving")

    async def served() -> bool:
        return ssl.get_server_certificate(address) == wanted

    await until(served, 60)
    assert caller.get("/healthz").status_code == 200
    admin = folder / "admin"
    answer = caller.get(DISCOVERY, certificate=admin, url=caller.cluster.api_url)
    assert answer.status_code == 200
