"""The same statistics as the application's, by plain batch computation with pandas.

It shares no code with the application but the service's own function, so that an error in one of
them shows as a difference.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from examples.flights.dataset import table
from examples.flights.emissions import carbon_dioxide_kilograms

KEY = ["origin", "carrier"]
LATE_MINUTES = 15

Statistics = Mapping[str, int | None]
"""The values of one key, by name."""
Result = Mapping[tuple[str, str], Statistics]
"""Statistics by (origin, carrier)."""

_EMISSION = ["origin", "distance", "latitude", "longitude", "seats"]


def statistics(flights: pd.DataFrame) -> Result:
    """Return the statistics of flights as `dataset.flights` returns them."""
    frame = _joined(flights)
    frame["carbon_dioxide_kilograms"] = _emissions(frame)
    frame["late"] = (frame["dep_delay"] > LATE_MINUTES).fillna(False).astype("int64")
    groups = frame.groupby(KEY)
    totals = pd.DataFrame(
        {
            "flights": groups.size(),
            "id_sum": groups["id"].sum(),
            "departed": groups["dep_time"].count(),
            "late": groups["late"].sum(),
            "dep_delay_minutes": groups["dep_delay"].sum(),
            "dep_delay_max": groups["dep_delay"].max(),
            "arrived": groups["arr_delay"].count(),
            "arr_delay_minutes": groups["arr_delay"].sum(),
            "seats": groups["seats"].sum(),
            "carbon_dioxide_kilograms": groups["carbon_dioxide_kilograms"].sum(),
            "wind_tenths": groups["wind_tenths"].sum(),
            "visibility_tenths": groups["visibility_tenths"].sum(),
            "rain_hundredths": groups["rain_hundredths"].sum(),
        }
    )
    return {
        (str(key[0]), str(key[1])): _with_means(dict(zip(totals.columns, row, strict=True)))
        for key, *row in totals.astype(object).itertuples(name=None)
    }


def _joined(flights: pd.DataFrame) -> pd.DataFrame:
    weather = table("weather")
    weather = pd.DataFrame(
        {
            "origin": weather["origin"],
            "time_hour": weather["time_hour"],
            "wind_tenths": _whole(weather["wind_speed"] * 10),
            "visibility_tenths": _whole(weather["visib"] * 10),
            "rain_hundredths": _whole(weather["precip"] * 100),
        }
    )
    planes = table("planes")[["tailnum", "seats"]].astype({"seats": "Int64"})
    airports = table("airports")[["faa", "lat", "lon"]]
    airports = airports.rename(columns={"faa": "dest", "lat": "latitude", "lon": "longitude"})
    joined = flights.merge(weather, "left", on=["origin", "time_hour"], validate="many_to_one")
    joined = joined.merge(planes, "left", on="tailnum", validate="many_to_one")
    return joined.merge(airports, "left", on="dest", validate="many_to_one")


def _whole(values: "pd.Series[float]") -> "pd.Series[int]":
    return pd.Series(np.floor(values + 0.5), dtype="Int64")


def _emissions(frame: pd.DataFrame) -> "pd.Series[int]":
    # Flights between the same places with as many seats emit the same: 336,776 become a few
    # thousand calls.
    asked = frame[_EMISSION].astype(object)
    asked = asked.mask(asked.isna(), None)
    known: dict[tuple[object, ...], int] = {}
    for values in set(asked.itertuples(index=False, name=None)):
        known[values] = carbon_dioxide_kilograms(dict(zip(_EMISSION, values, strict=True)))
    rows = asked.itertuples(index=False, name=None)
    return pd.Series([known[values] for values in rows], index=frame.index, dtype="int64")


def _with_means(row: dict[str, Any]) -> Statistics:
    values = {name: None if pd.isna(value) else int(value) for name, value in row.items()}
    hundredths = {
        "dep_delay_mean_hundredths": _mean(values["dep_delay_minutes"], values["departed"]),
        "arr_delay_mean_hundredths": _mean(values["arr_delay_minutes"], values["arrived"]),
        "late_percent_hundredths": _mean(values["late"], values["departed"], 10_000),
    }
    return {**values, **hundredths}


def _mean(total: int | None, count: int | None, scale: int = 100) -> int | None:
    return (total or 0) * scale // count if count else None
