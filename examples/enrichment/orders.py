"""Orders, the same for a seed.

`python -m examples.enrichment.orders --bootstrap-servers HOST:PORT --count N` sends them to the
topic `enrichment-orders`.
"""

import random
from collections.abc import Iterator
from typing import Any

from examples.sending import Record, send

TOPIC = "enrichment-orders"
CUSTOMERS = 500


def orders(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Yield so many orders."""
    chance = random.Random(seed)
    for number in range(count):
        yield {
            "id": number,
            "customer": chance.randrange(CUSTOMERS),
            "cents": chance.randint(100, 50_000),
        }


def records(count: int) -> Iterator[Record]:
    """Yield so many orders for the topic `enrichment-orders`."""
    return ((TOPIC, order) for order in orders(count))


if __name__ == "__main__":
    send(records)
