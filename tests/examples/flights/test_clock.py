"""The clock of the replay: every flight goes out once, at its time of day."""

import numpy as np
import pytest

from examples.flights.clock import (
    CHANNELS_AT_PEAK,
    TARGET_UTILIZATION,
    Clock,
    peak_rate,
    schedule,
    service_rate,
)
from examples.flights.dataset import flights


def test_days_of_a_cycle_lie_over_each_other() -> None:
    """Noon of both days of a cycle is the same moment; the next cycle follows."""
    clock = Clock(days=4, cycles=2, cycle_seconds=100.0)
    due = clock.due_seconds(np.array([0, 1, 2, 3]), np.array([720, 720, 0, 1439]))
    assert due == pytest.approx([50.0, 50.0, 100.0, 100 + 100 * 1439 / 1440])


def test_every_cycle_has_its_share_of_days() -> None:
    """365 days in 2 cycles: neither has more than one day more than the other."""
    clock = Clock(days=365, cycles=2, cycle_seconds=1.0)
    midnights = clock.due_seconds(np.arange(365), np.zeros(365, np.int64))
    assert np.bincount(midnights.astype(int)).tolist() == [183, 182]


def test_time_of_day() -> None:
    """The clock of people who watch."""
    clock = Clock(days=365, cycles=2, cycle_seconds=120.0)
    assert clock.time_of_day(0) == "00:00"
    assert clock.time_of_day(120 + 60 + 2.5) == "12:30"
    assert [clock.cycle(seconds) for seconds in (0, 119, 121, 239, 250)] == [1, 1, 2, 2, 2]


def test_schedule_of_real_days() -> None:
    """All flights of three days, in order, within the cycle, at night almost none."""
    chosen = flights(3)
    clock = Clock(days=3, cycles=1, cycle_seconds=24.0)
    ordered, due = schedule(chosen, clock)
    assert sorted(ordered["id"]) == sorted(chosen["id"])
    assert (np.diff(due) >= 0).all()
    assert due[0] >= 0
    assert due[-1] < clock.duration_seconds
    hours = np.bincount(due.astype(int), minlength=24)
    assert hours[1:5].max() < 0.01 * hours.max()
    assert peak_rate(due, clock) >= hours.max()


def test_peak_needs_the_channels_that_it_should() -> None:
    """At the service's rate, the peak keeps CHANNELS_AT_PEAK channels busy as planned."""
    rate = service_rate(2400.0)
    assert 2400.0 / (rate * TARGET_UTILIZATION) == pytest.approx(CHANNELS_AT_PEAK)
