"""What every encoding offers."""

from typing import Any, Protocol

from streamgraft_common.encodings.columns import Columns


class Undecodable(ValueError):
    """A value that is not what the topic should have."""


class Unencodable(ValueError):
    """A row that the schema has no place for."""


class Codec(Protocol):
    """One encoding of one topic."""

    def decode(self, value: bytes) -> dict[str, Any]:
        """Return the JSON object of a value. Raises Undecodable."""

    def encode(self, row: str) -> bytes:
        """Return the value of a row as Spark writes it in JSON. Raises Unencodable."""

    def unfit(self, columns: Columns) -> str:
        """Return why rows of these columns can't be encoded; '' if they may be."""
