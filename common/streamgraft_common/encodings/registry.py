"""A schema registry, by the REST contract of Confluent's: ids → schemas, schemas → ids."""

import json
import ssl
import struct
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from streamgraft_common.encodings import registry_access
from streamgraft_common.encodings.registry_access import AUTHORITY, SECRET, Access

TIMEOUT_SECONDS = 10.0
LATE_SECONDS = (0.2, 0.5, 1.0)
"""When a schema is asked for again that is not known: of several registries one may hear of it
later than the producer who has just registered it."""
HASTE_SECONDS = 20.0
"""For how long no schema is waited for once one was in vain: values that only look like a record
have another id each."""
_TYPE = "application/vnd.schemaregistry.v1+json"
_UNKNOWN = 40403
"""What a registry's own 404 says; one of a proxy before it does not."""
_HEADER = struct.Struct(">bI")
"""A zero and the schema's id, in front of each value."""


class RegistryError(Exception):
    """The registry can't be asked, or refuses: the query fails, and is tried again."""


class UnknownSchema(Exception):
    """The registry has no schema of this id."""


def framed(number: int, payload: bytes) -> bytes:
    """Return a value with the id of its schema."""
    return _HEADER.pack(0, number) + payload


def unframed(value: bytes) -> tuple[int, bytes]:
    """Return the id of a value's schema, and what follows. Raises ValueError."""
    if len(value) < _HEADER.size or value[0] != 0:
        raise ValueError("it does not begin with the id of a schema")
    return _HEADER.unpack_from(value)[1], value[_HEADER.size :]


class Registry:
    """Asks once for each schema; what is registered never changes.

    `secret`: the folder with what the registry is shown, if there is one. It is read for each
    question, since a Secret's new values come there by themselves.
    """

    def __init__(self, url: str, secret: Path | None = None) -> None:
        registry_access.check_url(url)
        self._url = url.rstrip("/")
        self._secret = secret
        self._schemas: dict[int, Any] = {}
        self._hasty_until = 0.0
        self._ids: dict[tuple[str, str], int] = {}

    def schema(self, number: int) -> Any:
        """Return a schema. Raises UnknownSchema and RegistryError."""
        if number not in self._schemas:
            found = self._patiently(number)
            if found.get("schemaType", "AVRO") != "AVRO" or found.get("references"):
                raise UnknownSchema(f"schema {number} is no Avro schema without references")
            self._schemas[number] = json.loads(found["schema"])
        return self._schemas[number]

    def _patiently(self, number: int) -> dict[str, Any]:
        path = f"/schemas/ids/{number}"
        pauses = () if time.monotonic() < self._hasty_until else LATE_SECONDS
        for pause in pauses:
            try:
                return self._ask("GET", path, "schema")
            except UnknownSchema:
                time.sleep(pause)
        try:
            return self._ask("GET", path, "schema")
        except UnknownSchema:
            if pauses:
                self._hasty_until = time.monotonic() + HASTE_SECONDS
            raise

    def register(self, subject: str, schema: str) -> int:
        """Return the id of a schema, which the subject has from now on. Raises RegistryError."""
        if (known := self._ids.get((subject, schema))) is not None:
            return known
        path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions"
        number = int(self._ask("POST", path, "id", {"schema": schema})["id"])
        self._ids[subject, schema] = number
        return number

    def _ask(self, method: str, path: str, wanted: str, body: Any = None) -> dict[str, Any]:
        """Return an answer that has what is wanted. Raises UnknownSchema and RegistryError."""
        asked = f"{method} {self._url}{path}"
        try:
            access = registry_access.read(self._secret, self._url)
            opener = access.opener()
        except (OSError, ValueError) as error:
            raise RegistryError(f"{asked}: {error} (in {SECRET})") from error
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": _TYPE, "Accept": _TYPE, **access.headers()}
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            with opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                said = access.redacted(error.read(10_000).decode(errors="replace"))[:1000]
            if method == "GET" and error.code == 404 and _code(said) == _UNKNOWN:
                raise UnknownSchema(f"the registry has no such schema: {path}") from error
            raise RegistryError(f"{asked}: {error.code} {_said(access, error, said)}") from error
        except (OSError, ValueError) as error:
            raise RegistryError(f"{asked}: {error}{_advice(error)}") from error
        if not isinstance(found, dict) or wanted not in found:
            raise RegistryError(f"{asked}: an answer without {wanted}, so not of a registry")
        return found


def _said(access: Access, error: urllib.error.HTTPError, body: str) -> str:
    """Return what a refusal says, and what to do about it."""
    if error.code not in (401, 403):
        return body
    return f"{access.refused(error.code)} ({' '.join(body.split()) or error.reason})"


def _advice(error: Exception) -> str:
    """Return what to do about a certificate."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if not isinstance(reason, ssl.SSLCertVerificationError):
        return ""
    return f"; if its authority is your own, set {AUTHORITY} in {SECRET}"


def _code(body: str) -> Any:
    """Return the code of an error, None of an answer that is not the registry's."""
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found.get("error_code") if isinstance(found, dict) else None
