"""Clicks of users, the same for a seed: `python -m examples.shared_stream.clicks`."""

import random
from collections.abc import Iterator

from examples.sending import Record, send

TOPIC = "shared-clicks"


def clicks(count: int, seed: int = 1) -> Iterator[Record]:
    """Yield so many clicks; one in ten took no time, which the importing job leaves out."""
    chance = random.Random(seed)
    for number in range(count):
        page = f"/{chance.choice('abc')}"
        millis = 0 if number % 10 == 0 else chance.randint(1, 5_000)
        yield TOPIC, {"user": f"u{chance.randrange(50)}", "page": page, "millis": millis}


if __name__ == "__main__":
    send(clicks)
