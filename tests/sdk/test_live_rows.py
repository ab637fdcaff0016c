"""Rows of a live job's topics: all of them and no more, shown with the client's mock of brokers."""

import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from streamgraft.cli._options import Target
from streamgraft.testing.live import LiveJob
from streamgraft_common.adl import Adl

ROWS = [{"number": number} for number in range(7)]
NOTHING = Adl(
    name="nothing", built_by="0", module="app", application="app", operators=[], streams=[]
)


@pytest.fixture
def job() -> Iterator[LiveJob]:
    """A job whose brokers last as long as the client that plays them."""
    mock = {"bootstrap.servers": "", "test.mock.num.brokers": "1", "log_level": "2"}
    player = Producer(mock)
    (broker,) = player.list_topics(timeout=10).brokers.values()
    yield LiveJob("nothing", "test", f"{broker.host}:{broker.port}", NOTHING, Target())
    player.flush()


def test_all_rows_are_returned(job: LiveJob) -> None:
    job.write("t", ROWS, key="number")
    found = job.read("t", len(ROWS), settle_seconds=0.1)
    assert sorted(row["number"] for row in found) == list(range(7))


def test_surplus_rows_are_an_error_that_shows_them(job: LiveJob) -> None:
    """Those in the topic are found, however short it looks for more."""
    job.write("t", ROWS)
    for count in (6, 0):
        with pytest.raises(
            AssertionError, match=rf"topic t has 7 rows, not {count}: \[.*'number': 6"
        ):
            job.read("t", count, settle_seconds=0.001)
    assert len(job.read("t", 6, settle_seconds=0)) == 6


def test_rows_that_come_a_while_later_are_surplus(job: LiveJob) -> None:
    job.write("t", ROWS[:1])
    assert job.read("t", 1, settle_seconds=0.1) == ROWS[:1]
    later = threading.Timer(1.0, job.write, ("t", ROWS[1:2]))
    later.start()
    with pytest.raises(AssertionError, match="has 2 rows, not 1"):
        job.read("t", 1)
    later.join()


def test_missing_rows_are_an_error_that_shows_all_there_are(job: LiveJob) -> None:
    job.write("t", ROWS)
    with pytest.raises(TimeoutError, match=r"topic t has 7 rows after 5 s, not 8: ") as raised:
        job.read("t", 8, timeout_seconds=5)
    assert all(str(row) in str(raised.value) for row in ROWS)
