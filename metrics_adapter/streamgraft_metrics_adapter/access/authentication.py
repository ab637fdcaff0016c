"""Who calls: the front proxy's word, else a bearer token, else a client certificate, else nobody.

The order is that of the API server's delegated authentication. Headers that name a user count only
with a client certificate of the front proxy.
"""

import asyncio
import functools
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_metrics_adapter.access.authorities import Authorities, AuthoritiesWatch
from streamgraft_metrics_adapter.access.shares import Rate
from streamgraft_metrics_adapter.status import UnauthorizedError, UnavailableError

Answer = TypeVar("Answer")

Headers = Sequence[tuple[str, str]]
"""Names in lower case, in the order of arrival; names may repeat."""

AUTHENTICATED = "system:authenticated"
_TOKEN_SECONDS = 10.0
_TOKENS = 1000
_FAILURES, _FAILURES_PER_SECOND = 20.0, 0.5
"""Tokens from one address that nobody knows: each costs the API server a review."""
_REVIEWS = 16
"""At once."""


@dataclass(frozen=True)
class User:
    """A caller whose identity is proved."""

    name: str
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    uid: str = ""

    def everyone(self) -> tuple[str, ...]:
        """Return the groups, with the one that holds everybody who is authenticated."""
        return (*(name for name in self.groups if name != AUTHENTICATED), AUTHENTICATED)


@dataclass(frozen=True, slots=True)
class _Peer:
    """What a client certificate proves as long as it is valid."""

    is_proxy: bool
    user: User | None
    valid_from: datetime
    valid_until: datetime


def proxied_user(peer: bytes | None, headers: Headers, trusted: Authorities) -> User | None:
    """Return the user that the front proxy names; None unless its certificate says it is one."""
    proved = _proved(peer, trusted)
    if proved is None or not proved.is_proxy:
        return None
    user = next((value for name in trusted.user_headers if (value := _first(headers, name))), None)
    if user is None:
        return None
    groups = [
        value for name in trusted.group_headers for header, value in headers if header == name
    ]
    return User(user, tuple(groups), _extra(headers, trusted.extra_prefixes))


def certificate_user(peer: bytes | None, trusted: Authorities) -> User | None:
    """Return the user of a client certificate: common name and organizations; None if untrusted."""
    proved = _proved(peer, trusted)
    return proved.user if proved else None


class Authenticator:
    """Finds out who calls; answers about tokens are kept for 10 s.

    Each address may try some tokens that nobody knows, then one every two seconds.
    """

    def __init__(self, client: KubeClient, watch: AuthoritiesWatch) -> None:
        self._client = client
        self._watch = watch
        self._known: dict[bytes, tuple[float, User]] = {}
        self._refused: dict[bytes, float] = {}
        self._attempts = Rate("unknown tokens from your address", _FAILURES, _FAILURES_PER_SECOND)
        self._reviews = asyncio.Semaphore(_REVIEWS)

    def is_front_proxy(self, peer: bytes | None) -> bool:
        """Return whether a client certificate (DER) is that of the API server's front proxy."""
        proved = _proved(peer, self._watch.current)
        return proved is not None and proved.is_proxy

    async def user(self, peer: bytes | None, headers: Headers, address: str) -> User:
        """Return the caller; `peer`: the client certificate that TLS verified (DER); `address`:
        that the request comes from.

        Raises UnauthorizedError, TooManyError after too many tokens from there that nobody knows,
        or UnavailableError if the API server can't tell.
        """
        trusted = self._watch.current
        if user := proxied_user(peer, headers, trusted):
            return user
        if token := bearer(_first(headers, "authorization") or ""):
            user = await self._token_user(token, address)
        else:
            user = certificate_user(peer, trusted)
        if user is None:
            raise UnauthorizedError("Unauthorized")
        return user

    async def _token_user(self, token: str, address: str) -> User | None:
        # Memory must not hold credentials.
        digest = hashlib.sha256(token.encode()).digest()
        known = self._known.get(digest)
        if known and known[0] > time.monotonic():
            return known[1]
        if self._refused.get(digest, 0.0) > time.monotonic():
            return None
        # Counted before it is known to be bad, so that many at once don't all pass.
        self._attempts.acquire(address)
        async with self._reviews:
            user = await self._review(token)
        until = time.monotonic() + _TOKEN_SECONDS
        if user is None:
            _keep(self._refused, digest, until)
        else:
            self._attempts.give_back(address)
            _keep(self._known, digest, (until, user))
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
        extra = tuple((key, tuple(values)) for key, values in user.get("extra", {}).items())
        return User(user["username"], tuple(user.get("groups", ())), extra, user.get("uid", ""))


def _keep(known: dict[bytes, Answer], digest: bytes, answer: Answer) -> None:
    """Remember an answer; the oldest goes for it."""
    known.pop(digest, None)
    if len(known) >= _TOKENS:
        del known[next(iter(known))]
    known[digest] = answer


def _proved(peer: bytes | None, trusted: Authorities) -> _Peer | None:
    """Return what a certificate (DER) proves now."""
    if peer is None:
        return None
    proved = _examined(peer, trusted)
    return proved if proved.valid_from <= datetime.now(UTC) <= proved.valid_until else None


@functools.lru_cache(maxsize=1024)
def _examined(peer: bytes, trusted: Authorities) -> _Peer:
    """Examine a certificate once; a connection shows the same one with every request.

    TLS proved that the peer owns the key and that the chain ends in a CA that was trusted at some
    time; which one, and whether it still is, is decided here.
    """
    certificate = x509.load_der_x509_certificate(peer)
    name = _common_name(certificate)
    allowed = not trusted.allowed_names or name in trusted.allowed_names
    organizations = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    user = User(name, tuple(str(part.value) for part in organizations))
    return _Peer(
        is_proxy=allowed and _issued_by(certificate, trusted.proxy),
        user=user if name and _issued_by(certificate, trusted.clients) else None,
        valid_from=certificate.not_valid_before_utc,
        valid_until=certificate.not_valid_after_utc,
    )


def _issued_by(certificate: x509.Certificate, authorities: Sequence[x509.Certificate]) -> bool:
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


def _extra(headers: Headers, prefixes: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    extra: dict[str, tuple[str, ...]] = {}
    for prefix in prefixes:
        for header, value in headers:
            if header.startswith(prefix):
                # Keys are percent-encoded, as header names can't hold a slash.
                key = unquote(header[len(prefix) :])
                extra[key] = (*extra.get(key, ()), value)
    return tuple(extra.items())


def bearer(authorization: str) -> str | None:
    """Return the bearer token of a request's header Authorization; None if it is something else."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None
