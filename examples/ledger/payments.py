"""Payments, the same for a seed.

`python -m examples.ledger.payments --bootstrap-servers HOST:PORT --count N` sends them to the topic
`ledger-payments`.
"""

import random
from collections.abc import Iterator
from typing import Any

from examples.sending import Record, send

TOPIC = "ledger-payments"
ACCOUNTS = 200
_NOTHING = 0.02
"""Share of payments that move no money."""


def payments(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Yield so many payments: cents into an account, or out of it."""
    chance = random.Random(seed)
    for number in range(count):
        cents = 0 if chance.random() < _NOTHING else chance.randint(-50_000, 60_000)
        yield {"id": number, "account": f"a{chance.randrange(ACCOUNTS)}", "cents": cents}


def records(count: int) -> Iterator[Record]:
    """Yield so many payments for the topic `ledger-payments`."""
    return ((TOPIC, payment) for payment in payments(count))


if __name__ == "__main__":
    send(records)
