"""A trace of sensors with known anomalies, the same for a seed.

`python -m examples.sensors.trace --bootstrap-servers HOST:PORT --count N` sends it to the topic
`readings`. Each sensor swings around a level of its own, with noise; now and then a reading is far
off, which is what the application is to find.
"""

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from examples.sending import Record, send

SENSORS = 20
CALM_READINGS = 60
"""Of each sensor, before its first anomaly."""
_START = datetime(2026, 1, 1, tzinfo=UTC)
_PERIOD = 500
_NOISE, _SWING, _JUMP = 0.2, 0.5, 6.0
_SHARE = 0.01


def readings(count: int, seed: int = 1) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield so many readings, sensor after sensor, and whether each is an anomaly."""
    chance = random.Random(seed)
    levels = [chance.uniform(15.0, 25.0) for _ in range(SENSORS)]
    for number in range(count):
        sensor, turn = number % SENSORS, number // SENSORS
        swing = _SWING * math.sin(2 * math.pi * turn / _PERIOD)
        off = turn >= CALM_READINGS and chance.random() < _SHARE
        value = (
            levels[sensor] + swing + chance.gauss(0, _NOISE) + off * chance.choice((-1, 1)) * _JUMP
        )
        time = _START + timedelta(seconds=turn)
        yield (
            {
                "id": number,
                "sensor": f"sensor-{sensor}",
                "at": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "value": round(value, 3),
            },
            off,
        )


def records(count: int) -> Iterator[Record]:
    """Yield so many readings for the topic `readings`."""
    return (("readings", reading) for reading, _ in readings(count))


if __name__ == "__main__":
    send(records)
