"""What a schema registry is shown: keys of the Secret of restricted properties, which the pods of
PEs mount (docs/decisions/0073-credentials-for-the-registry.md).

| keys | for |
|---|---|
| `registry-user`, `registry-password` | basic authentication: a name, or a key and its secret |
| `registry-token` | a bearer token |
| `registry-ca.crt` | the authority that signed the registry's certificate, if it is your own |
| `registry-url` | whose they are: other registries are shown nothing; may be absent |
"""

import base64
import re
import ssl
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPMessage
from pathlib import Path
from typing import IO, Self

USER, PASSWORD, TOKEN = "registry-user", "registry-password", "registry-token"
AUTHORITY, URL = "registry-ca.crt", "registry-url"
KEYS = frozenset((USER, PASSWORD, TOKEN, AUTHORITY, URL))
"""All that is read of the Secret, and no setting of Spark."""
SECRET = "the Secret that processingElement.restrictedPropertiesSecret names"
_PORTS = {"http": 80, "https": 443}
_TOKEN_FORM = re.compile(r"[!-~]+")
"""What a header can have, and no client quotes in an error."""


class Elsewhere(OSError):
    """The registry sends its clients to where they don't go."""


def origin(url: str) -> str:
    """Return scheme, host and port. Raises ValueError, which repeats no part of the URL."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("a registry whose URL is none of https or http")
    try:
        port = parts.port or _PORTS[parts.scheme]
    except ValueError:
        raise ValueError("a registry whose URL has no valid port") from None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}"


def check_url(url: str) -> None:
    """Check that requests can be made of a URL, and that it tells no secret to who reads it.

    Raises ValueError, which repeats no part of it.
    """
    parts = urllib.parse.urlsplit(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        what = "a user or password" if "@" in parts.netloc else "more than host and path"
        raise ValueError(f"a registry whose URL has {what}, which all can read in the bundle")
    origin(url)


@dataclass(frozen=True, repr=False)
class Access:
    """What one registry is shown."""

    authorization: str = ""
    """The header; empty: none."""
    keys: str = ""
    """Which keys it is made of, in words."""
    authority: str = ""
    """PEM; empty: the system's CAs decide."""
    hidden: tuple[str, ...] = ()
    """What no message may have."""
    of_another: bool = False
    """Whether the Secret's keys are of another registry."""

    @classmethod
    def parse(cls, data: Mapping[str, str], url: str) -> Self:
        """Read a Secret's texts for a registry. Raises ValueError that names keys; it repeats no
        value."""
        given = {
            key: text for key, value in data.items() if key in KEYS and (text := value.strip())
        }
        named = URL in given
        if named and _named(given[URL]) != origin(url):
            return cls(of_another=True)
        authority = given.get(AUTHORITY, "")
        secret, scheme, keys = _credentials(given)
        if not keys:
            return cls(authority=authority)
        if not named and origin(url).startswith("http:"):
            raise ValueError(
                f"{keys} go by https only; if the way there is safe, allow it by a key {URL} with"
                " this registry's URL"
            )
        header = f"{scheme} {secret}"
        hidden = tuple(given[key] for key in (PASSWORD, TOKEN) if key in given)
        return cls(header, keys, authority, (secret, *hidden))

    def headers(self) -> dict[str, str]:
        """Return the headers of requests."""
        return {"Authorization": self.authorization} if self.authorization else {}

    def refused(self, code: int) -> str:
        """Return what to do about a registry's 401 or 403."""
        if not self.authorization:
            why = f"its {URL} is of another" if self.of_another else "there are none"
            return (
                f"the registry asks for credentials, and {why}: set {USER} and {PASSWORD}, or"
                f" {TOKEN}, in {SECRET}"
            )
        if code == 401:
            return f"the registry does not accept {self.keys}: set what it accepts in {SECRET}"
        return (
            f"the registry accepts {self.keys}, but they have no right to this: grant it there, or"
            f" set others in {SECRET}"
        )

    def redacted(self, text: str) -> str:
        """Return a text of the registry's without what it was shown."""
        for secret in self.hidden:
            text = text.replace(secret, "…")
        return text

    def opener(self) -> urllib.request.OpenerDirector:
        """Return what makes requests. Raises ValueError."""
        return urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=self._context()),
            _Redirects(bool(self.authorization)),
        )

    def _context(self) -> ssl.SSLContext:
        if not self.authority:
            return ssl.create_default_context()
        pem = self.authority.encode("ascii", "replace").decode()  # comments may have any letters
        try:
            context = ssl.create_default_context(cadata=pem)
        except (ssl.SSLError, ValueError):
            raise ValueError(f"{AUTHORITY} is no certificate in PEM") from None
        # As of the API server's: private authorities often have no key identifiers.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context


def read(folder: Path | None, url: str) -> Access:
    """Read the mounted Secret. Raises ValueError and OSError, neither with a value."""
    files = [folder / key for key in sorted(KEYS)] if folder else []
    return Access.parse({file.name: _text(file) for file in files if file.exists()}, url)


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError:
        raise ValueError(f"{file.name} is no text") from None


def _named(url: str) -> str:
    try:
        check_url(url)
        return origin(url)
    except ValueError:
        raise ValueError(f"{URL} is no URL of a registry") from None


def _credentials(given: Mapping[str, str]) -> tuple[str, str, str]:
    """Return what the header has, its scheme, and which keys that is."""
    if (USER in given) != (PASSWORD in given):
        has, lacks = (USER, PASSWORD) if USER in given else (PASSWORD, USER)
        raise ValueError(f"{has} without {lacks}")
    if USER in given and TOKEN in given:
        raise ValueError(f"both {USER} and {TOKEN}: a registry is shown one of them")
    if USER in given:
        if ":" in given[USER]:
            raise ValueError(f"{USER} has a colon, which no user may have: the rest is {PASSWORD}")
        pair = f"{given[USER]}:{given[PASSWORD]}"
        return base64.b64encode(pair.encode()).decode(), "Basic", f"{USER} and {PASSWORD}"
    if TOKEN in given:
        if not _TOKEN_FORM.fullmatch(given[TOKEN]):
            raise ValueError(f"{TOKEN} has characters that no token may have")
        return given[TOKEN], "Bearer", TOKEN
    return "", "", ""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Credentials go to the registry's own origin: a redirected request has the same headers."""

    def __init__(self, guarded: bool) -> None:
        self._guarded = guarded

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        here, there = origin(req.full_url), origin(newurl)
        if req.get_method() != "GET" or (self._guarded and here != there):
            fp.close()
            raise Elsewhere(f"it redirects to {there}: if that is the registry, give its URL")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
