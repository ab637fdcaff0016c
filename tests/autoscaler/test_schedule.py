"""Times of the week."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from streamgraft_autoscaler.schedule import Period


def at(text: str, zone: str = "UTC") -> float:
    """Return a Unix time; 2026-01-05 is a Monday."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("2026-01-05T07:59:59", False),
        ("2026-01-05T08:00:00", True),
        ("2026-01-05T16:59:59", True),
        ("2026-01-05T17:00:00", False),
        ("2026-01-06T12:00:00", False),
    ],
)
def test_within_a_day(text: str, inside: bool) -> None:
    assert Period("08:00", "17:00", ["Mon"], "UTC").contains(at(text)) is inside


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("2026-01-05T23:00:00", True),
        ("2026-01-06T01:59:00", True),
        ("2026-01-06T02:00:00", False),
        ("2026-01-06T23:00:00", False),
        ("2026-01-05T01:00:00", False),
    ],
)
def test_past_midnight_belongs_to_the_day_it_starts_on(text: str, inside: bool) -> None:
    assert Period("22:00", "02:00", ["Mon"], "UTC").contains(at(text)) is inside


def test_all_day_every_day() -> None:
    assert Period("00:00", "00:00", [], "UTC").contains(at("2026-01-08T13:00:00"))


def test_in_its_time_zone() -> None:
    """Eight in the morning in Berlin is six in summer and seven in winter."""
    period = Period("08:00", "09:00", [], "Europe/Berlin")
    assert period.contains(at("2026-07-01T06:30:00"))
    assert period.contains(at("2026-01-01T07:30:00"))
    assert not period.contains(at("2026-01-01T06:30:00"))
