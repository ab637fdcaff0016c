"""A schema registry, by the REST contract of Confluent's: ids → schemas, schemas → ids."""

import json
import struct
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from streamgraft_common.encodings import registry_access

TIMEOUT_SECONDS = 10.0
_TYPE = "application/vnd.schemaregistry.v1+json"
_UNKNOWN = 40403
"""What a registry's own 404 says; one of a proxy before it does not."""
_REFUSED = (
    f"look at {registry_access.USERNAME} and {registry_access.PASSWORD}, or"
    f" {registry_access.TOKEN}, in the Secret that"
    " spec.processingElement.restrictedPropertiesSecret names"
)
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
    """Asks once for each schema; what is registered never changes."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._schemas: dict[int, Any] = {}
        self._ids: dict[tuple[str, str], int] = {}

    def schema(self, number: int) -> Any:
        """Return a schema. Raises UnknownSchema and RegistryError."""
        if number not in self._schemas:
            found = self._ask("GET", f"/schemas/ids/{number}")
            if found.get("schemaType", "AVRO") != "AVRO" or found.get("references"):
                raise UnknownSchema(f"schema {number} is no Avro schema without references")
            self._schemas[number] = json.loads(found["schema"])
        return self._schemas[number]

    def register(self, subject: str, schema: str) -> int:
        """Return the id of a schema, which the subject has from now on. Raises RegistryError."""
        if (known := self._ids.get((subject, schema))) is not None:
            return known
        path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions"
        number = self._ids[subject, schema] = int(self._ask("POST", path, {"schema": schema})["id"])
        return number

    def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": _TYPE, "Accept": _TYPE}
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            access = registry_access.found()
            if access.authorization:  # for this server's eyes, wherever it may lead us
                request.add_unredirected_header("Authorization", access.authorization)
            with urllib.request.urlopen(
                request, timeout=TIMEOUT_SECONDS, context=access.context()
            ) as answer:
                found: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(1000).decode(errors="replace")
            if method == "GET" and error.code == 404 and _code(said) == _UNKNOWN:
                raise UnknownSchema(f"the registry has no such schema: {path}") from error
            advice = f": {_REFUSED}" if error.code in (401, 403) else ""
            raise RegistryError(
                f"{method} {self._url}{path}: {error.code} {said}{advice}"
            ) from error
        except (OSError, ValueError) as error:
            raise RegistryError(f"{method} {self._url}{path}: {error}") from error
        return found


def _code(body: str) -> Any:
    """Return the code of an error, None of an answer that is not the registry's."""
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found.get("error_code") if isinstance(found, dict) else None
