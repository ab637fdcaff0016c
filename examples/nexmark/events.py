"""The auction site of the Nexmark benchmark: persons, auctions and bids, the same for a number.

`python -m examples.nexmark.events --bootstrap-servers HOST:PORT --count N` sends them to the
topics `persons`, `auctions` and `bids`. As in the benchmark, of 50 events one is a person, three
are auctions and 46 are bids (https://github.com/nexmark/nexmark).
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from examples.sending import Record, send

Event = dict[str, Any]

_CYCLE, _AUCTIONS = 50, 3
_START = datetime(2026, 1, 1, tzinfo=UTC)
_STEP = timedelta(milliseconds=100)
_STATES = (("OR", "Portland"), ("ID", "Boise"), ("CA", "San Jose"), ("AZ", "Phoenix"))
_NAMES = ("Ada", "Grace", "Edsger", "Barbara", "Donald", "Frances")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple", "channel-7")
_EXTRA = "abcdefghijklmnopqrstuvwxyz"
_HOT = 0.5
"""Share of bids that go to one of the newest auctions."""


def events(count: int, seed: int = 1) -> Iterator[Record]:
    """Yield so many events, each with its topic, in the order of their times."""
    chance = random.Random(seed)
    persons = auctions = 0
    for number in range(count):
        place, time = number % _CYCLE, _START + number * _STEP
        if place == 0:
            persons += 1
            yield "persons", _person(chance, persons, time)
        elif place <= _AUCTIONS:
            auctions += 1
            yield "auctions", _auction(chance, auctions, persons, time)
        else:
            yield "bids", _bid(chance, auctions, persons, time)


def by_topic(count: int, seed: int = 1) -> dict[str, list[Event]]:
    """Return so many events by topic."""
    found: dict[str, list[Event]] = {"persons": [], "auctions": [], "bids": []}
    for topic, event in events(count, seed):
        found[topic].append(event)
    return found


def _person(chance: random.Random, number: int, time: datetime) -> Event:
    name = chance.choice(_NAMES)
    state, city = chance.choice(_STATES)
    return {
        "id": number,
        "name": name,
        "email_address": f"{name.lower()}@example.com",
        "city": city,
        "state": state,
        "date_time": _text(time),
    }


def _auction(chance: random.Random, number: int, persons: int, time: datetime) -> Event:
    return {
        "id": number,
        "item_name": f"item {number}",
        "initial_bid": chance.randint(1, 100),
        "seller": chance.randint(1, persons),
        "category": chance.randint(10, 14),
        "date_time": _text(time),
        "expires": _text(time + timedelta(seconds=20)),
    }


def _bid(chance: random.Random, auctions: int, persons: int, time: datetime) -> Event:
    newest = chance.random() < _HOT
    channel = chance.choice(_CHANNELS)
    first, second, third = (chance.choice(_EXTRA) * 3 for _ in range(3))
    return {
        "auction": chance.randint(max(1, auctions - 2) if newest else 1, auctions),
        "bidder": chance.randint(1, persons),
        "price": chance.randint(100, 10_000_000),
        "channel": channel,
        "url": f"https://shop.example/{first}/{second}/{third}?channel_id={len(channel)}",
        "date_time": _text(time),
        "extra": "".join(chance.choices(_EXTRA, k=12)),
    }


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


if __name__ == "__main__":
    send(events)
