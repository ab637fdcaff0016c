"""Keeps the Secrets with the certificates of jobs' control ports.

Secrets are read by name and never listed, so what happens to one is seen at the next resync of its
job: a deleted or old certificate is replaced within a minute.
"""

import base64
import binascii
import datetime
import logging
import time

from streamgraft_common import names
from streamgraft_common.kinds import SECRET
from streamgraft_common.kube import ApiError, Conflict, KubeClient, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_operator.certificates.authority import Pair, issue, needs_renewal, new_authority
from streamgraft_operator.kit.objects import is_owned_by
from streamgraft_operator.manifests.metadata import Owner, metadata

log = logging.getLogger(__name__)

AUTHORITY_KEY, CERTIFICATE_KEY, PRIVATE_KEY = "ca.crt", "tls.crt", "tls.key"

FRESH_SECONDS = 50.0
"""What was good is looked at again after this time: with every resync."""


class CertificateError(Exception):
    """There is no certificate for a job; the message says what to do."""

    reason: str


class AuthorityUnusable(CertificateError):
    """The Secret of the authority holds no authority."""

    reason = "AuthorityUnusable"


class SecretTaken(CertificateError):
    """There is a Secret of the certificate's name that is not the job's."""

    reason = "SecretTaken"


class Issuer:
    """Issues certificates with the authority in the Secret `streamgraft-ca` of its own namespace.

    If there is none it makes one; a Secret of that name (tls.crt, tls.key) that is there is used.
    """

    def __init__(self, client: KubeClient, own_namespace: str) -> None:
        self._client = client
        self._own_namespace = own_namespace
        self._seen: dict[Key, tuple[int, float]] = {}

    async def prepare(self) -> None:
        """Make the authority before any job needs it: a Prometheus whose pod mounts its Secret
        does not start without. If that fails, the first job with certificates makes it."""
        try:
            await self._authority(datetime.datetime.now(datetime.UTC))
        except (ApiError, Unreachable) as error:
            log.warning("Secret %s can't be made: %s", names.AUTHORITY_SECRET, error)

    async def ensure(self, owner: Owner, days: int) -> None:
        """Make the Secret of a job's control ports hold a certificate that is good for a while.

        Raises CertificateError.
        """
        key = owner.namespace, owner.name
        seen, at = self._seen.get(key, (0, 0.0))
        if seen == days and time.monotonic() < at + FRESH_SECONDS:
            return
        try:
            await self._ensure(owner, days)
        except ValueError as error:
            raise AuthorityUnusable(
                f"Secret {names.AUTHORITY_SECRET} in namespace {self._own_namespace} can't sign"
                f" certificates ({error}): it needs tls.crt and tls.key of an authority"
            ) from error
        self._seen[key] = days, time.monotonic()

    async def _ensure(self, owner: Owner, days: int) -> None:
        now = datetime.datetime.now(datetime.UTC)
        authority = await self._authority(now)
        hosts = names.control_hosts(owner.namespace)
        name = names.control_secret(owner.name)
        path = SECRET.path(owner.namespace, name)
        held = await self._client.find(path)
        if held and not is_owned_by(held, owner.uid):
            raise SecretTaken(
                f"the job keeps the certificate of its control ports in Secret {name}, and there is"
                " one that is not the job's: delete it, and the job goes on by itself"
            )
        if held and not needs_renewal(
            _field(held, CERTIFICATE_KEY), authority.certificate, hosts, days, now
        ):
            return
        data = _data(issue(authority, hosts, days, now), authority.certificate)
        if held:
            version = held["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "data": data}
            await self._client.patch(path, patch)
        else:
            described = metadata(owner, name, {})
            await self._client.create(SECRET.path(owner.namespace), _secret(described, data))

    async def _authority(self, now: datetime.datetime) -> Pair:
        path = SECRET.path(self._own_namespace, names.AUTHORITY_SECRET)
        held = await self._client.find(path)
        if held is None:
            described = {"name": names.AUTHORITY_SECRET, "namespace": self._own_namespace}
            manifest = _secret(described, _data(new_authority(now)))
            try:
                held = await self._client.create(SECRET.path(self._own_namespace), manifest)
            except Conflict:  # another job was quicker, or somebody who brings one
                held = await self._client.get(path)
        return Pair(_field(held, CERTIFICATE_KEY), _field(held, PRIVATE_KEY))


def _secret(described: Object, data: dict[str, str]) -> Object:
    return {
        "apiVersion": SECRET.api_version,
        "kind": SECRET.kind,
        "metadata": described,
        "type": "kubernetes.io/tls",
        "data": data,
    }


def _data(pair: Pair, authority: bytes | None = None) -> dict[str, str]:
    content = {CERTIFICATE_KEY: pair.certificate, PRIVATE_KEY: pair.key}
    if authority is not None:
        content[AUTHORITY_KEY] = authority
    return {key: base64.b64encode(value).decode() for key, value in content.items()}


def _field(secret: Object, key: str) -> bytes:
    try:
        return base64.b64decode((secret.get("data") or {}).get(key, ""), validate=True)
    except binascii.Error:
        return b""
