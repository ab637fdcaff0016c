"""Who calls: the front proxy's word, else a bearer token, else a client certificate, else nobody.

The order is that of the API server's delegated authentication. Headers that name a user count only
with a client certificate of the front proxy.
"""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_metrics_adapter.authorities import Authorities, AuthoritiesWatch
from streamgraft_metrics_adapter.status import UnauthorizedError, UnavailableError

Headers = Sequence[tuple[str, str]]
"""Names in lower case, in the order of arrival; names may repeat."""

AUTHENTICATED = "system:authenticated"
_TOKEN_SECONDS = 10.0
_TOKENS = 1000


@dataclass(frozen=True)
class User:
    """A caller whose identity is proved."""

    name: str
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    uid: str = ""

    def everyone(self) -> tuple[str, ...]:
        """Return the groups, with the one that holds everybody who is authenticated."""
        return (*(name for name in self.groups if name != AUTHENTICATED), AUTHENTICATED)


def proxied_user(
    certificate: x509.Certificate | None, headers: Headers, trusted: Authorities
) -> User | None:
    """Return the user that the front proxy names; None unless its certificate says it is one."""
    if certificate is None or not _issued_by(certificate, trusted.proxy):
        return None
    if trusted.allowed_names and _common_name(certificate) not in trusted.allowed_names:
        return None
    user = next((value for name in trusted.user_headers if (value := _first(headers, name))), None)
    if user is None:
        return None
    groups = [
        value for name in trusted.group_headers for header, value in headers if header == name
    ]
    return User(user, tuple(groups), _extra(headers, trusted.extra_prefixes))


def certificate_user(certificate: x509.Certificate | None, trusted: Authorities) -> User | None:
    """Return the user of a client certificate: common name and organizations; None if untrusted."""
    if certificate is None or not _issued_by(certificate, trusted.clients):
        return None
    name = _common_name(certificate)
    organizations = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return User(name, tuple(str(part.value) for part in organizations)) if name else None


class Authenticator:
    """Finds out who calls; answers about tokens are kept for 10 s."""

    def __init__(self, client: KubeClient, watch: AuthoritiesWatch) -> None:
        self._client = client
        self._watch = watch
        self._tokens: dict[bytes, tuple[float, User | None]] = {}

    async def user(self, peer: bytes | None, headers: Headers) -> User:
        """Return the caller; `peer`: the client certificate that TLS verified (DER).

        Raises UnauthorizedError, or UnavailableError if the API server can't tell.
        """
        trusted = self._watch.current
        certificate = x509.load_der_x509_certificate(peer) if peer else None
        if user := proxied_user(certificate, headers, trusted):
            return user
        if token := _bearer(headers):
            user = await self._token_user(token)
        else:
            user = certificate_user(certificate, trusted)
        if user is None:
            raise UnauthorizedError("Unauthorized")
        return user

    async def _token_user(self, token: str) -> User | None:
        # Memory must not hold credentials.
        digest = hashlib.sha256(token.encode()).digest()
        known = self._tokens.get(digest)
        if known and known[0] > time.monotonic():
            return known[1]
        user = await self._review(token)
        if len(self._tokens) >= _TOKENS:
            self._tokens.clear()
        self._tokens[digest] = time.monotonic() + _TOKEN_SECONDS, user
        return user

    async def _review(self, token: str) -> User | None:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        try:
            answer = await self._client.create("/apis/authentication.k8s.io/v1/tokenreviews", body)
        except (ApiError, Unreachable) as error:
            raise UnavailableError(f"the token can't be reviewed: {error}") from error
        status = answer.get("status", {})
        if not status.get("authenticated"):
            return None
        user = status["user"]
        extra = {key: tuple(values) for key, values in user.get("extra", {}).items()}
        return User(user["username"], tuple(user.get("groups", ())), extra, user.get("uid", ""))


def _issued_by(certificate: x509.Certificate, authorities: Sequence[x509.Certificate]) -> bool:
    """Tell whether one of them signed it and it is valid now.

    TLS proved that the peer owns the key and that the chain ends in a CA that was trusted at some
    time; which one, and whether it still is, is decided here.
    """
    now = datetime.now(UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        return False
    return any(_directly(certificate, authority) for authority in authorities)


def _directly(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _common_name(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def _first(headers: Headers, name: str) -> str | None:
    return next((value for header, value in headers if header == name), None)


def _extra(headers: Headers, prefixes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    for prefix in prefixes:
        for header, value in headers:
            if header.startswith(prefix):
                # Keys are percent-encoded, as header names can't hold a slash.
                key = unquote(header[len(prefix) :])
                extra[key] = (*extra.get(key, ()), value)
    return extra


def _bearer(headers: Headers) -> str | None:
    scheme, _, token = (_first(headers, "authorization") or "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None
