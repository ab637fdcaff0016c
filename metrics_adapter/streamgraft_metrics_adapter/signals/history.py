"""The recent past of every region, in memory: what the REST routes and the console draw.

Kept as plain numbers: an hour of five thousand regions as objects would take gigabytes.
"""

import math
from array import array
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from streamgraft_common.kube.store import Key

SECONDS = 10.0
"""One sample is kept of each such span of Unix time: the same ones in every replica."""
SAMPLES = 360
"""Samples kept: an hour."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One refresh of one region: Unix time, channels, records/s; None where there was no value."""

    time: float
    width: int
    wanted_width: int
    input_rate: float | None
    processing_rate: float | None
    signals: Mapping[str, float | None]


class _Ring:
    """Times, and the numbers of each time behind one another: objects would take ten times more."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self.times = array("d")
        self._numbers = array("f")

    def add(self, time: float, numbers: Sequence[float]) -> None:
        self.times.append(time)
        self._numbers.extend(numbers)
        if len(self.times) > SAMPLES:
            del self.times[0]
            del self._numbers[: self._columns]

    def numbers(self, index: int) -> "array[float]":
        return self._numbers[index * self._columns : (index + 1) * self._columns]


class History:
    """A ring of samples per region, to seven digits; `signals`: names of the signals in them."""

    def __init__(self, signals: Collection[str]) -> None:
        self._signals = tuple(signals)
        self._rings: dict[Key, _Ring] = {}

    def add(self, key: Key, sample: Sample) -> None:
        """Append a sample unless the last one is too recent; a full ring drops its oldest."""
        ring = self._rings.setdefault(key, _Ring(4 + len(self._signals)))
        if ring.times and sample.time // SECONDS == ring.times[-1] // SECONDS:
            return
        values = (sample.width, sample.wanted_width, sample.input_rate, sample.processing_rate)
        signals = (sample.signals.get(name) for name in self._signals)
        ring.add(sample.time, [math.nan if v is None else v for v in (*values, *signals)])

    def of(self, key: Key, since: float) -> list[Sample]:
        """Return the samples taken after the Unix time `since`, oldest first."""
        ring = self._rings.get(key)
        if ring is None:
            return []
        first = bisect_right(ring.times, since)
        return [
            self._sample(ring.times[index], ring.numbers(index))
            for index in range(first, len(ring.times))
        ]

    def before(self, key: Key, time: float) -> Sample | None:
        """Return the last sample before a Unix time; None if it was more than a minute before."""
        ring = self._rings.get(key)
        index = bisect_right(ring.times, time) - 1 if ring else -1
        if ring is None or index < 0 or ring.times[index] < time - 60:
            return None
        return self._sample(ring.times[index], ring.numbers(index))

    def keep(self, keys: Collection[Key]) -> None:
        """Forget all regions but these."""
        self._rings = {key: ring for key, ring in self._rings.items() if key in keys}

    def _sample(self, time: float, numbers: "array[float]") -> Sample:
        width, wanted, input_rate, processing_rate, *signals = numbers
        values = (_finite(value) for value in signals)
        return Sample(
            time=time,
            width=int(width),
            wanted_width=int(wanted),
            input_rate=_finite(input_rate),
            processing_rate=_finite(processing_rate),
            signals=dict(zip(self._signals, values, strict=True)),
        )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
