"""The recent past of every region, in memory: what the REST routes and the console draw."""

import math
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from streamgraft_common.kube.store import Key

SAMPLES = 1800
"""Samples kept per region: an hour at the default refresh of 2 s."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One refresh of one region: Unix time, channels, records/s; None where there was no value."""

    time: float
    width: int
    wanted_width: int
    input_rate: float | None
    processing_rate: float | None
    signals: Mapping[str, float | None]

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form; numbers that JSON can't express become null."""
        return {
            "time": self.time,
            "width": self.width,
            "wantedWidth": self.wanted_width,
            "inputRate": _finite(self.input_rate),
            "processingRate": _finite(self.processing_rate),
            "signals": dict(self.signals),
        }


class History:
    """A ring of samples per region."""

    def __init__(self) -> None:
        self._rings: dict[Key, deque[Sample]] = {}

    def add(self, key: Key, sample: Sample) -> None:
        """Append a sample; the oldest one falls out of a full ring."""
        self._rings.setdefault(key, deque(maxlen=SAMPLES)).append(sample)

    def of(self, key: Key, since: float) -> list[Sample]:
        """Return the samples taken after the Unix time `since`, oldest first."""
        return [sample for sample in self._rings.get(key, ()) if sample.time > since]

    def keep(self, keys: Collection[Key]) -> None:
        """Forget all regions but these."""
        self._rings = {key: ring for key, ring in self._rings.items() if key in keys}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
