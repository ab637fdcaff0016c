"""What one run of the demo does, and the names that it uses."""

import math
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from examples.flights import dataset
from examples.flights.clock import Clock, Seconds, peak_rate, schedule, service_rate
from streamgraft_local import ClusterSpec
from streamgraft_local.paths import state_folder

ROOT = Path(__file__).resolve().parents[2]
APPLICATION = Path(__file__).with_name("app.py")

NAMESPACE = "default"
JOB = "flights"
REGION = "enrich"
MAX_WIDTH = 4
WARM_POOL = MAX_WIDTH - 1
"""Pods that wait for the first wave."""
SOURCE_TOPIC = "flights"
RESULT_TOPIC = "delays"

DAYS_OF_THE_YEAR = 365
DAYS = 31
"""January: what two cores carry at the pace of the replay."""
CYCLES = 2
"""So many days or more as two accelerated days; less are one."""
CYCLE_SECONDS = 120.0

BATCH_SECONDS = 1.2
"""Work in one batch of a channel, at most. A shard moves between two batches, so this bounds how
long a width change waits behind a backlog."""


@dataclass(frozen=True)
class Settings:
    """What the user chose. `base`: folder below which the environment's own folder lies."""

    days: int = DAYS
    cycle_seconds: float = CYCLE_SECONDS
    report: Path = Path("demo-report")
    base: Path = field(default_factory=state_folder)

    @property
    def clock(self) -> Clock:
        """The clock of the replay."""
        cycles = CYCLES if self.days >= DAYS else 1
        return Clock(self.days, cycles, self.cycle_seconds)

    @property
    def cluster(self) -> ClusterSpec:
        """The demo's environment: its own, and quicker to react than a real cluster's."""
        return ClusterSpec(
            name="demo", base=self.base, hpa_sync_seconds=2, metrics_window_seconds=10
        )


@dataclass(frozen=True)
class Plan:
    """The load that the settings make: flights, the peak in flights/s, the service's speed."""

    settings: Settings
    flights: pd.DataFrame
    due: Seconds
    peak: float
    rate: float

    @classmethod
    def of(cls, settings: Settings) -> "Plan":
        """Read the flights and plan the load."""
        flights, due = schedule(dataset.flights(settings.days), settings.clock)
        peak = peak_rate(due, settings.clock)
        return cls(settings, flights, due, peak, service_rate(peak))

    @property
    def batch_flights(self) -> int:
        """Flights that one batch of a channel may take."""
        return math.ceil(self.rate * BATCH_SECONDS)

    def describe(self) -> str:
        """Return what will happen, for the terminal and the report."""
        clock = self.settings.clock
        what = "the year" if clock.days == DAYS_OF_THE_YEAR else f"the first {clock.days} days"
        return (
            f"{len(self.flights):,} flights: all of {what}, as {clock.cycles} accelerated"
            f" day(s) of {clock.cycle_seconds:.0f} s. The days are laid over each"
            " other: every flight goes out at its own time of day, so mornings and nights are as"
            f" steep as they were. Peak {self.peak:,.0f} flights/s. The enrichment service takes"
            f" {self.rate:,.0f} flights/s per connection (a channel has one), so that the peak"
            " alone keeps 2 of them busy at 80 %; what batches cost beside makes that up to 4."
        )
