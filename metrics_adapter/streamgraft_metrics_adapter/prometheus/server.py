"""Which Prometheus is asked, and what it is shown: certificates, a token or a password, headers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from requests import PreparedRequest, Session
from requests.auth import AuthBase, HTTPBasicAuth

_AUTHORITY, _CERTIFICATE, _KEY = "ca.crt", "tls.crt", "tls.key"
_TOKEN, _USER, _PASSWORD = "token", "username", "password"


class CredentialsError(Exception):
    """The folder with the credentials is of no use; the message says what it lacks."""


@dataclass(frozen=True)
class PrometheusServer:
    """A server of Prometheus' API, such as Prometheus, Thanos, Mimir or a proxy before one."""

    url: str
    credentials: Path | None = None
    """A folder, such as that of a mounted Secret, with any of `ca.crt`; `tls.crt` and `tls.key`;
    `token`, or `username` and `password`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with each query, such as a tenant's name."""

    def prepare(self, session: Session) -> None:
        """Have a session show them. Raises CredentialsError."""
        session.headers.update(self.headers)
        if self.credentials is None:
            return
        there = {file.name for file in self.credentials.glob("*")}
        if not there & {_AUTHORITY, _CERTIFICATE, _TOKEN, _USER}:
            raise CredentialsError(
                f"{self.credentials} has no credentials for Prometheus: it may have {_AUTHORITY},"
                f" {_CERTIFICATE} with {_KEY}, and {_TOKEN}, or {_USER} with {_PASSWORD}"
            )
        for first, second in ((_CERTIFICATE, _KEY), (_USER, _PASSWORD)):
            if (first in there) != (second in there):
                raise CredentialsError(f"{self.credentials} has one of {first} and {second} only")
        if _TOKEN in there and _USER in there:
            raise CredentialsError(f"{self.credentials} has both {_TOKEN} and {_USER}")
        if _AUTHORITY in there:
            session.verify = str(self.credentials / _AUTHORITY)
        if _CERTIFICATE in there:
            session.cert = (str(self.credentials / _CERTIFICATE), str(self.credentials / _KEY))
        if there & {_TOKEN, _USER}:
            session.auth = _FromFiles(self.credentials)


@dataclass(frozen=True)
class _FromFiles(AuthBase):
    """Reads them for each request: a mounted Secret changes in place."""

    folder: Path

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        if (self.folder / _TOKEN).exists():
            request.headers["Authorization"] = f"Bearer {self._text(_TOKEN)}"
            return request
        return HTTPBasicAuth(self._text(_USER), self._text(_PASSWORD))(request)

    def _text(self, name: str) -> str:
        return (self.folder / name).read_text().strip()
