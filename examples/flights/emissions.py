"""What the enrichment service computes: the carbon dioxide of a flight, in whole kilograms."""

import math
from collections.abc import Mapping
from typing import Any

EARTH_RADIUS_KILOMETRES = 6371.0
METRES_A_MILE = 1609
GRAMS_A_SEAT_KILOMETRE = 85
"""Rough mean of a single-aisle jet."""
SEATS_UNKNOWN = 150
"""Assumed where the plane isn't in the register."""

ORIGINS = {
    "EWR": (40.692500, -74.168667),
    "JFK": (40.639751, -73.778925),
    "LGA": (40.777245, -73.872608),
}
"""Latitude and longitude of the airports of departure, degrees."""


def carbon_dioxide_kilograms(flight: Mapping[str, Any]) -> int:
    """Return the emission of one flight: great circle to its destination, times seats.

    Needs `origin` and `distance` (miles); uses `latitude`, `longitude` (of the destination,
    degrees) and `seats` unless they are None.
    """
    kilometres = flight["distance"] * METRES_A_MILE // 1000
    if flight["latitude"] is not None and flight["longitude"] is not None:
        place = (flight["latitude"], flight["longitude"])
        kilometres = round(great_circle_kilometres(ORIGINS[flight["origin"]], place))
    seats = flight["seats"] if flight["seats"] is not None else SEATS_UNKNOWN
    return int(kilometres * seats * GRAMS_A_SEAT_KILOMETRE // 1000)


def great_circle_kilometres(start: tuple[float, float], end: tuple[float, float]) -> float:
    """Return the distance of two points given in degrees (haversine formula)."""
    latitudes = math.radians(start[0]), math.radians(end[0])
    width = math.radians(end[1] - start[1])
    height = latitudes[1] - latitudes[0]
    square = (
        math.sin(height / 2) ** 2
        + math.cos(latitudes[0]) * math.cos(latitudes[1]) * math.sin(width / 2) ** 2
    )
    return 2 * EARTH_RADIUS_KILOMETRES * math.asin(math.sqrt(square))
