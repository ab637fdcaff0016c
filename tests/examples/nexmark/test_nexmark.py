"""Nexmark's queries on Spark against the same in plain Python, over the same events."""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.examples.conftest import Graphs, Records
from tests.examples.rotation import turn

from examples.nexmark import auctions, bids, people
from examples.nexmark.events import Event, by_topic, events
from streamgraft.testing import Results

pytestmark = pytest.mark.integration

EVENTS = by_topic(2_000)
BIDS, AUCTIONS, PERSONS = EVENTS["bids"], EVENTS["auctions"], EVENTS["persons"]
APPLICATIONS = {"bids": bids, "auctions": auctions, "people": people}
WINDOW = timedelta(seconds=10)

Rows = Counter[tuple[Any, ...]]


def rows(found: Iterable[Iterable[Any]]) -> Rows:
    """Return rows to compare, in any order."""
    return Counter(tuple(row) for row in found)


def of(results: Results, query: str, *columns: str) -> Rows:
    """Return columns of what a query made."""
    return rows([row[name] for name in columns] for row in results.rows(query))


def time(event: Event) -> datetime:
    """Return an event's time as Spark gives it: UTC, without a zone."""
    return datetime.strptime(event["date_time"], "%Y-%m-%dT%H:%M:%S.%fZ")


def window_of(moment: datetime, length: timedelta = WINDOW) -> datetime:
    """Return the start of the window that a moment is in."""
    return moment - (moment - datetime(2026, 1, 1)) % length


def by(key: Callable[[Event], Any], items: Iterable[Event]) -> dict[Any, list[Event]]:
    """Return events by a key."""
    found = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found


def test_events_are_those_of_the_benchmark() -> None:
    """Of 50 one is a person, three are auctions; the same for the same seed; times go up."""
    assert (len(PERSONS), len(AUCTIONS), len(BIDS)) == (40, 120, 1840)
    assert by_topic(2_000) == EVENTS
    assert by_topic(2_000, seed=2) != EVENTS
    times = [event["date_time"] for _, event in events(2_000)]
    assert times == sorted(times)


@pytest.fixture
def results(graph_of: Graphs, records: Records) -> Callable[[str], Results]:
    """Run an application on all events."""
    inputs = {
        "bids": {"bids": (BIDS, bids.BID)},
        "auctions": {"bids": (BIDS, auctions.BID), "auctions": (AUCTIONS, auctions.AUCTION)},
        "people": {
            "bids": (BIDS, people.BID),
            "auctions": (AUCTIONS, people.AUCTION),
            "persons": (PERSONS, people.PERSON),
        },
    }

    def run(name: str) -> Results:
        frames = {stream: records(*given) for stream, given in inputs[name].items()}
        return graph_of(APPLICATIONS[name].app).run(**frames)

    return run


@turn("nexmark/bids")
def test_queries_of_single_bids(results: Callable[[str], Results]) -> None:
    """Each as its definition says, bid by bid."""
    found = results("bids")
    names = ("auction", "bidder", "price")
    assert of(found, "q0", *names) == rows([b[name] for name in names] for b in BIDS)
    euros = [{**bid, "price": round(bid["price"] * 0.908, 2)} for bid in BIDS]
    assert of(found, "q1", *names) == rows([b[name] for name in names] for b in euros)
    assert of(found, "q2", "auction", "price") == rows(
        (b["auction"], b["price"]) for b in BIDS if b["auction"] % 123 == 0
    )
    assert of(found, "q13", "auction", "value") == rows(
        (b["auction"], f"slot {b['auction'] % 10}") for b in BIDS
    )
    assert of(found, "q14", "auction", "price", "bid_time_type", "c_counts") == rows(
        (b["auction"], b["price"], "night", b["extra"].count("c"))
        for b in euros
        if 1_000_000 < b["price"] < 50_000_000
    )
    known = {"Apple": "0", "Google": "1", "Facebook": "2", "Baidu": "3", "channel-7": "9"}
    assert of(found, "q21", "bidder", "channel_id") == rows(
        (b["bidder"], known[b["channel"]]) for b in BIDS
    )
    folders = [re.split("[/?]", bid["url"])[3:6] for bid in BIDS]
    assert of(found, "q22", "dir1", "dir2", "dir3") == rows(folders)


@turn("nexmark/bids")
def test_kinds_of_day(graph_of: Graphs, records: Records) -> None:
    """Night until 6:59 and from 20:00 on, day from 8:00 to 18:59."""
    hours = [
        {**BIDS[0], "price": 2_000_000, "date_time": f"2026-01-01T{hour:02}:30:00.000Z"}
        for hour in range(24)
    ]
    found = graph_of(APPLICATIONS["bids"].app).run(bids=records(hours, bids.BID))
    kinds = Counter(row["bid_time_type"] for row in found.rows("q14"))
    assert kinds == {"night": 7 + 4, "other": 2, "day": 11}


@turn("nexmark/auctions")
def test_queries_of_auctions(results: Callable[[str], Results]) -> None:
    """Windows, statistics, last bids, and bids with their auction."""
    found = results("auctions")
    highest = [
        max(group, key=lambda b: (b["price"], b["auction"], b["bidder"]))
        for group in by(lambda b: window_of(time(b)), BIDS).values()
    ]
    assert of(found, "q7", "window_end", "auction", "price") == rows(
        (window_of(time(b)) + WINDOW, b["auction"], b["price"]) for b in highest
    )
    assert of(found, "q5", "window_end", "auction", "num") == rows(hot_items())
    assert of(
        found, "q17", "auction", "total_bids", "rank1_bids", "max_price", "sum_price"
    ) == rows(
        (
            auction,
            len(group),
            sum(b["price"] < 10_000 for b in group),
            max(b["price"] for b in group),
            sum(b["price"] for b in group),
        )
        for auction, group in by(lambda b: b["auction"], BIDS).items()
    )
    last = {(b["auction"], b["bidder"]): b["price"] for b in BIDS}
    assert of(found, "q18", "auction", "bidder", "price") == rows(
        (*key, price) for key, price in last.items()
    )
    category = {item["id"]: item["category"] for item in AUCTIONS}
    assert of(found, "q20", "auction", "bidder", "category") == rows(
        (b["auction"], b["bidder"], 10) for b in BIDS if category[b["auction"]] == 10
    )


def hot_items() -> list[tuple[datetime, int, int]]:
    """Return the most wanted auction of each ten seconds that begin every two."""
    step = timedelta(seconds=2)
    counts: dict[datetime, Counter[int]] = defaultdict(Counter)
    for bid in BIDS:
        for back in range(5):
            counts[window_of(time(bid), step) - back * step + WINDOW][bid["auction"]] += 1
    most = {
        end: max(found.items(), key=lambda it: (it[1], -it[0])) for end, found in counts.items()
    }
    return [(end, *item) for end, item in most.items()]


@turn("nexmark/people")
def test_queries_of_people(results: Callable[[str], Results]) -> None:
    """Joins with who sells, and sessions of who bids."""
    found = results("people")
    person = {item["id"]: item for item in PERSONS}
    near = {"OR", "ID", "CA"}
    assert of(found, "q3", "person", "name", "auction") == rows(
        (a["seller"], person[a["seller"]]["name"], a["id"])
        for a in AUCTIONS
        if a["category"] == 10 and person[a["seller"]]["state"] in near
    )
    assert of(found, "q8", "person", "auction") == rows(
        (a["seller"], a["id"])
        for a in AUCTIONS
        if window_of(time(a)) == window_of(time(person[a["seller"]]))
    )
    assert of(found, "q11", "person", "bid_count", "start_time") == rows(sessions())


def sessions() -> list[tuple[int, int, datetime]]:
    """Return the sessions of each bidder: number of bids, and start."""
    found = []
    for bidder, group in by(lambda b: b["bidder"], BIDS).items():
        times = sorted(map(time, group))
        start, count = times[0], 1
        for before, now in itertools.pairwise(times):
            if now - before > WINDOW:
                found.append((bidder, count, start))
                start, count = now, 0
            count += 1
        found.append((bidder, count, start))
    return found
