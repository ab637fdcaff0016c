"""Whom the adapter believes: certificates and headers, without a server."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from streamgraft_local import pki
from streamgraft_metrics_adapter.access.authentication import User, certificate_user, proxied_user
from streamgraft_metrics_adapter.access.authorities import Authorities, authorities_of

PROXY, CLIENTS, FOREIGN = (pki.authority(name) for name in ("proxy", "clients", "foreign"))
HEADERS = [
    ("x-remote-user", "jane"),
    ("x-remote-group", "a"),
    ("x-remote-group", "b"),
    ("x-remote-extra-scopes%2fone", "1"),
    ("x-remote-extra-scopes%2fone", "2"),
]
JANE = User("jane", ("a", "b"), (("scopes/one", ("1", "2")),))


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


def certificate(signer: pki.Issued, name: str, *groups: str) -> bytes:
    """Return a client certificate (DER)."""
    return pki.issue(signer, name, groups).certificate.public_bytes(Encoding.DER)


def dated(signer: pki.Issued, name: str, *, first_day: int, last_day: int) -> bytes:
    """Return a client certificate (DER) that is valid between two days from now."""
    today = datetime.now(UTC)
    found = (
        x509.CertificateBuilder()
        .subject_name(pki.issue(signer, name).certificate.subject)
        .issuer_name(signer.certificate.subject)
        .public_key(signer.key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today + timedelta(days=first_day))
        .not_valid_after(today + timedelta(days=last_day))
        .sign(signer.key, hashes.SHA256())
    )
    return found.public_bytes(Encoding.DER)


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


@pytest.mark.parametrize(("first_day", "last_day"), [(-2, -1), (1, 2)])
def test_certificates_count_only_while_they_are_valid(first_day: int, last_day: int) -> None:
    days = {"first_day": first_day, "last_day": last_day}
    assert proxied_user(dated(PROXY, "front", **days), HEADERS, trusted("front")) is None
    assert certificate_user(dated(CLIENTS, "joe", **days), trusted("front")) is None
    valid = dated(PROXY, "front", first_day=-1, last_day=1)
    assert proxied_user(valid, HEADERS, trusted("front")) == JANE


def test_rotation_changes_the_trusted_authorities_at_once() -> None:
    """Both while both are published; then a connection of the old authority is no longer."""
    old, new = certificate(PROXY, "front"), certificate(FOREIGN, "front")
    before = trusted("front")
    both = replace(before, proxy=(*before.proxy, FOREIGN.certificate))
    after = replace(before, proxy=(FOREIGN.certificate,))
    believed = [
        [proxied_user(peer, HEADERS, now) == JANE for peer in (old, new)]
        for now in (before, both, after)
    ]
    assert believed == [[True, False], [True, True], [False, True]]


def test_malformed_authorities_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"PEM|certificate"):
        authorities_of({"client-ca-file": "no certificate"})
