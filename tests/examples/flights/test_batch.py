"""The batch result: of a few flights counted by hand, and of the whole first day."""

from typing import Any

import pandas as pd
import pytest

from examples.flights.batch import statistics
from examples.flights.dataset import COLUMNS, flights
from examples.flights.emissions import carbon_dioxide_kilograms, great_circle_kilometres


def test_year_is_complete() -> None:
    """The dataset has the 336,776 flights of 365 days, each with an id of its own."""
    year = flights()
    assert len(year) == 336_776
    assert year["id"].is_unique
    assert (year["day"].min(), year["day"].max()) == (0, 364)
    assert year["minute"].between(0, 1439).all()


def test_first_day() -> None:
    """Counts of the first of January, taken from the file by other means."""
    result = statistics(flights(1))
    assert sum(values["flights"] or 0 for values in result.values()) == 842
    assert sum(values["departed"] or 0 for values in result.values()) == 838


def test_by_hand() -> None:
    """One late flight, one early, one cancelled: counts, sums and means rounded down."""
    rows: list[dict[str, Any]] = [
        {"id": 7, "tailnum": "N14228", "dep_time": 517, "dep_delay": 16, "arr_delay": 11},
        {"id": 8, "tailnum": "N24211", "dep_time": 533, "dep_delay": -19, "arr_delay": None},
        {"id": 9, "tailnum": None, "dep_time": None, "dep_delay": None, "arr_delay": None},
    ]
    common = {"origin": "EWR", "carrier": "UA", "dest": "IAH", "distance": 1400}
    when = {"time_hour": "2013-01-01T10:00:00Z"}
    frame = pd.DataFrame([{**common, **when, **row} for row in rows])
    types = {name: kind for name, kind in COLUMNS.items() if name in frame and kind == "Int64"}
    values = statistics(frame.astype(types))["EWR", "UA"]
    assert (values["flights"], values["departed"], values["late"]) == (3, 2, 1)
    assert (values["id_sum"], values["arrived"]) == (24, 1)
    assert (values["dep_delay_minutes"], values["dep_delay_max"]) == (-3, 16)
    assert values["dep_delay_mean_hundredths"] == -150
    assert values["arr_delay_mean_hundredths"] == 1100
    assert values["late_percent_hundredths"] == 5000
    assert values["seats"] == 149 + 149


def test_no_departure_has_no_mean() -> None:
    """A key with cancelled flights only: null, not zero and not an error."""
    row = {"id": 1, "origin": "LGA", "carrier": "YV", "dest": "IAD", "distance": 229}
    missing = {"tailnum": None, "dep_time": None, "dep_delay": None, "arr_delay": None}
    frame = pd.DataFrame([{**row, **missing, "time_hour": "2013-01-01T10:00:00Z"}])
    frame = frame.astype({name: "Int64" for name in missing if name != "tailnum"})
    values = statistics(frame)["LGA", "YV"]
    assert values["dep_delay_max"] is None
    assert values["dep_delay_mean_hundredths"] is None
    assert values["late_percent_hundredths"] is None


def test_great_circle() -> None:
    """New York to London (JFK, LHR): about 5,540 km."""
    distance = great_circle_kilometres((40.639751, -73.778925), (51.4706, -0.461941))
    assert distance == pytest.approx(5540, abs=15)


def test_emission_without_coordinates_uses_the_flights_own_distance() -> None:
    """San Juan is not in the table of airports: 1,598 miles as the flight says."""
    flight = {"origin": "JFK", "distance": 1598, "latitude": None, "longitude": None}
    assert carbon_dioxide_kilograms({**flight, "seats": 200}) == 2571 * 200 * 85 // 1000
    assert carbon_dioxide_kilograms({**flight, "seats": None}) == 2571 * 150 * 85 // 1000
