"""RFC 3339 timestamps, as resources carry them, to and from Unix seconds."""

from datetime import UTC, datetime


def to_rfc3339(seconds: float) -> str:
    """Return a UTC timestamp with milliseconds."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_rfc3339(timestamp: str) -> float:
    """Return Unix seconds. Raises ValueError if it is no timestamp."""
    return datetime.fromisoformat(timestamp).timestamp()
