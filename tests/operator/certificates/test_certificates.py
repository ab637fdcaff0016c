"""Certificates of control ports: who trusts them, and when they are replaced."""

import asyncio
import base64
import datetime
import socket
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from streamgraft_common import names
from streamgraft_common.kube import KubeClient, KubeConfig, NotFound, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_operator import assembly
from streamgraft_operator.__main__ import operate
from streamgraft_operator.certificates.authority import Pair, issue, needs_renewal, new_authority
from streamgraft_operator.settings import Settings

NOW = datetime.datetime.now(datetime.UTC)
HOSTS = names.control_hosts("ns")
DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> Pair:
    return new_authority(NOW)


def test_certificate_is_replaced_after_two_thirds_of_its_validity(authority: Pair) -> None:
    held = issue(authority, HOSTS, 30, NOW).certificate

    def old_after(days: int) -> bool:
        return needs_renewal(held, authority.certificate, HOSTS, 30, NOW + days * DAY)

    assert [old_after(days) for days in (0, 19, 20, 40)] == [False, False, True, True]


def test_certificate_is_replaced_if_something_else_is_asked_for(authority: Pair) -> None:
    held = issue(authority, HOSTS, 30, NOW).certificate
    other = new_authority(NOW)
    assert needs_renewal(held, authority.certificate, HOSTS, 7, NOW)
    assert needs_renewal(held, authority.certificate, names.control_hosts("other"), 30, NOW)
    assert needs_renewal(held, other.certificate, HOSTS, 30, NOW)
    assert needs_renewal(b"", authority.certificate, HOSTS, 30, NOW)


def test_validity_is_what_was_asked_for(authority: Pair) -> None:
    certificate = x509.load_pem_x509_certificate(issue(authority, HOSTS, 7, NOW).certificate)
    valid_for = certificate.not_valid_after_utc - NOW
    assert 6.99 * DAY < valid_for <= 7 * DAY


def test_unusable_authority_is_named() -> None:
    with pytest.raises(ValueError, match="PEM"):
        issue(Pair(b"none", b"none"), HOSTS, 7, NOW)


@pytest.mark.parametrize("host", [names.CONTROL_HOST, "job-3.ns.svc", "job-3.ns.svc.cluster.local"])
def test_clients_that_trust_the_authority_accept_it(
    authority: Pair, tmp_path: Path, host: str
) -> None:
    """A handshake, by address and by the names of Services."""
    pair = issue(authority, HOSTS, 7, NOW)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    client = ssl.create_default_context(cadata=authority.certificate.decode())
    near, far = socket.socketpair()

    def answer() -> None:
        with server.wrap_socket(far, server_side=True) as connection:
            connection.sendall(b"ok")

    thread = threading.Thread(target=answer)
    thread.start()
    with client.wrap_socket(near, server_hostname=host) as connection:
        assert connection.recv(2) == b"ok"
    thread.join()


class OneSecret(KubeClient):
    """An API server that has at most one Secret, or none that answers."""

    def __init__(self) -> None:
        super().__init__(KubeConfig(server="http://127.0.0.1:1"))
        self.held: Object | None = None
        self.answers = True

    async def request(
        self, method: str, path: str, *, body: Mapping[str, Any] | None = None, **_: Any
    ) -> Object:
        """Answer for the Secret of the authority."""
        if not self.answers:
            raise Unreachable("no answer")
        if method == "POST":
            self.held = dict(body or {})
        if self.held is None:
            raise NotFound(404, "NotFound", path)
        return self.held


async def test_the_authority_is_there_before_the_first_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The chart's Prometheus mounts it; one that is there stays."""
    begun: list[KubeClient] = []

    async def run(client: KubeClient, *_: object) -> None:
        begun.append(client)

    monkeypatch.setattr(assembly, "run", run)
    client = OneSecret()
    settings = Settings("kafka:9092", {}, "image", own_namespace="own")
    for client.answers in (False, True):
        await operate(client, settings, asyncio.Event())
    assert begun == [client, client]
    made = client.held
    assert made is not None
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == ("streamgraft-ca", "own")
    pair = Pair(*(base64.b64decode(made["data"][key]) for key in ("tls.crt", "tls.key")))
    assert issue(pair, HOSTS, 7, NOW).certificate
    await operate(client, settings, asyncio.Event())
    assert client.held is made
