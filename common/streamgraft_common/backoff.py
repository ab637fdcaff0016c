"""How long to wait before the next try. Pure."""

_MOST_DOUBLINGS = 16
"""Failures go on for as long as an outage does, and numbers end somewhere."""


def doubled(first: float, times: int, longest: float) -> float:
    """Return a time (seconds) that is doubled so many times, `longest` at most."""
    return min(longest, first * 2.0 ** min(times, _MOST_DOUBLINGS))
