"""RFC 3339 timestamps, as resources carry them, to and from Unix seconds."""

from datetime import UTC, datetime
from typing import Literal


def to_rfc3339(
    seconds: float, timespec: Literal["seconds", "milliseconds", "microseconds"] = "milliseconds"
) -> str:
    """Return a UTC timestamp, cut off at this unit and always with its digits."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec=timespec).replace("+00:00", "Z")


def from_rfc3339(timestamp: str) -> float:
    """Return Unix seconds. Raises ValueError if it is no timestamp."""
    return datetime.fromisoformat(timestamp).timestamp()
