"""Whom the adapter believes: certificates and headers, without a server."""

import json

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from streamgraft_local import pki
from streamgraft_metrics_adapter.authentication import User, certificate_user, proxied_user
from streamgraft_metrics_adapter.authorities import Authorities, authorities_of

PROXY, CLIENTS, FOREIGN = (pki.authority(name) for name in ("proxy", "clients", "foreign"))
HEADERS = [
    ("x-remote-user", "jane"),
    ("x-remote-group", "a"),
    ("x-remote-group", "b"),
    ("x-remote-extra-scopes%2fone", "1"),
    ("x-remote-extra-scopes%2fone", "2"),
]
JANE = User("jane", ("a", "b"), {"scopes/one": ("1", "2")})


def pem(issued: pki.Issued) -> str:
    """Return a certificate as text."""
    return issued.certificate.public_bytes(Encoding.PEM).decode()


def trusted(*allowed: str) -> Authorities:
    """Return what a cluster publishes."""
    return authorities_of(
        {
            "requestheader-client-ca-file": pem(PROXY),
            "requestheader-allowed-names": json.dumps(allowed),
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
            "client-ca-file": pem(CLIENTS),
        }
    )


def certificate(signer: pki.Issued, name: str, *groups: str) -> x509.Certificate:
    """Return a client certificate."""
    return pki.issue(signer, name, groups).certificate


def test_front_proxy_names_the_user() -> None:
    assert proxied_user(certificate(PROXY, "front"), HEADERS, trusted("front")) == JANE


def test_any_name_is_allowed_if_none_is_listed() -> None:
    assert proxied_user(certificate(PROXY, "front"), HEADERS, trusted()) == JANE


@pytest.mark.parametrize("signer", [CLIENTS, FOREIGN], ids=["clients", "foreign"])
def test_other_authorities_make_no_front_proxy(signer: pki.Issued) -> None:
    assert proxied_user(certificate(signer, "front"), HEADERS, trusted("front")) is None


def test_other_names_make_no_front_proxy() -> None:
    assert proxied_user(certificate(PROXY, "other"), HEADERS, trusted("front")) is None


def test_headers_alone_name_nobody() -> None:
    assert proxied_user(None, HEADERS, trusted("front")) is None


def test_front_proxy_without_a_user_names_nobody() -> None:
    assert proxied_user(certificate(PROXY, "front"), HEADERS[1:], trusted("front")) is None


def test_client_certificate_names_user_and_groups() -> None:
    found = certificate_user(certificate(CLIENTS, "joe", "c"), trusted("front"))
    assert found == User("joe", ("c",))
    assert found.everyone() == ("c", "system:authenticated")


@pytest.mark.parametrize("signer", [PROXY, FOREIGN], ids=["proxy", "foreign"])
def test_other_authorities_name_no_client(signer: pki.Issued) -> None:
    assert certificate_user(certificate(signer, "joe"), trusted("front")) is None


def test_nobody_is_trusted_before_the_authorities_are_known() -> None:
    nothing = Authorities()
    assert proxied_user(certificate(PROXY, "front"), HEADERS, nothing) is None
    assert certificate_user(certificate(CLIENTS, "joe"), nothing) is None


def test_malformed_authorities_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"PEM|certificate"):
        authorities_of({"client-ca-file": "no certificate"})
