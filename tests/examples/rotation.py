"""Whose turn it is: each day one example is tried, so that CI stays quick.

EXAMPLES=all in the environment runs all of them, EXAMPLES=NAME one. The flights are not among them:
their tests and their demo always run.
"""

import os
from datetime import UTC, datetime

import pytest

NAMES = (
    *("nexmark/bids", "nexmark/auctions", "nexmark/people"),
    *("sensors", "enrichment", "wordcount", "shared_stream", "ledger"),
)


def chosen(wanted: str, day: int) -> tuple[str, ...]:
    """Return the examples that run: all, the named one, or that of a day."""
    if wanted == "all":
        return NAMES
    return (wanted,) if wanted else (NAMES[day % len(NAMES)],)


def turn(name: str) -> pytest.MarkDecorator:
    """Return the mark of tests of an example: skipped unless it is its turn."""
    assert name in NAMES
    today = datetime.now(UTC).date().toordinal()
    running = chosen(os.environ.get("EXAMPLES", ""), today)
    return pytest.mark.skipif(
        name not in running, reason=f"the turn of {', '.join(running)}; EXAMPLES=all runs all"
    )
