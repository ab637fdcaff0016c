"""Text for messages that people read."""

from collections.abc import Iterable


def listed(items: Iterable[object], shown: int = 10) -> str:
    """Return the first of the items, and how many more there are; "none" if there are none."""
    texts = [str(item) for item in items]
    more = f" and {len(texts) - shown} more" if len(texts) > shown else ""
    return ", ".join(texts[:shown]) + more or "none"
