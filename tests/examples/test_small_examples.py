"""Word count and the two jobs that share a stream, over what they generate."""

import re
from collections import Counter

import pytest
from tests.examples.conftest import Graphs, Records
from tests.examples.rotation import turn

from examples.shared_stream import clicks, ingest, totals
from examples.wordcount import app as wordcount
from examples.wordcount import lines

pytestmark = pytest.mark.integration


@turn("wordcount")
def test_words_are_counted(graph_of: Graphs, records: Records) -> None:
    given = [value for _, value in lines.lines(300)]
    found = graph_of(wordcount.app).run(lines=records(given, "text string"))
    words = [word for it in given for word in re.split(r"\W+", it["text"].lower())]
    wanted = Counter(word for word in words if len(word) >= 3)
    assert {row["word"]: row["count"] for row in found.rows("counts")} == wanted
    ways = {name: {row["word"] for row in found.rows(name)} for name in ("frequent", "rare")}
    assert ways["frequent"] == {word for word, count in wanted.items() if count >= 10}
    assert not ways["frequent"] & ways["rare"]


@turn("shared_stream")
def test_times_of_users_are_added_up(graph_of: Graphs, records: Records) -> None:
    """What one job exports is what the other imports, but for its filter."""
    given = [value for _, value in clicks.clicks(500)]
    columns = "user string, page string, millis bigint"
    shared = graph_of(ingest.app).run(clicks=records(given, columns)).rows("clicks")
    assert shared == given
    kept = [row for row in shared if row["millis"] > 0]
    found = graph_of(totals.app).run(clicks=records(kept, "user string, millis bigint"))
    wanted: Counter[str] = Counter()
    for row in kept:
        wanted[row["user"]] += row["millis"]
    assert {row["user"]: row["millis"] for row in found.rows("totals")} == wanted
