"""What counts as a difference between rows that were found and those that were wanted."""

import math
from typing import Any

import pytest
from pyspark.sql import Row

from streamgraft.testing._compare import difference

SUM = sum([0.1] * 10)
"""A rounding error beside 1."""


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (SUM, 1.0),
        (-0.0, 0.0),
        (2.0**60, 2.0**60 + 1024),
        (math.nan, math.nan),
        (math.inf, math.inf),
        (None, None),
        (Row(a=1, b=2.0), Row(a=1, b=2.0)),
        ([SUM, None], [1.0, None]),
        ({"x": SUM, "y": -0.0}, {"y": 0.0, "x": 1.0}),
        ({SUM: "x", 2.0: "y"}, {2.0: "y", 1.0: "x"}),
        (Row(at=Row(x=SUM, y=math.nan)), Row(at=Row(x=1.0, y=math.nan))),
        ([{"x": [Row(y=SUM)]}], [{"x": [Row(y=1.0)]}]),
    ],
)
def test_equal_and_close_values_are_no_difference(found: Any, wanted: Any) -> None:
    assert difference([Row(value=found)], [Row(value=wanted)]) == []


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (1767225600.0, 1767225603.0),
        (1767225600000.0, 1767225600001.0),
        (1e-20, 0.0),
        (math.nan, 0.0),
        (math.nan, None),
        (math.inf, -math.inf),
        (True, 1),
        ("1", 1),
        ([1.0, 2.0], [2.0, 1.0]),
        ([1.0], [1.0, 1.0]),
        ({1.0: "x", 2.0: "y"}, {1.0: "y", 2.0: "x"}),
        ({"x": [Row(y=1767225600.0)]}, {"x": [Row(y=1767225603.0)]}),
    ],
)
def test_other_values_are_a_difference(found: Any, wanted: Any) -> None:
    assert len(difference([Row(value=found)], [Row(value=wanted)])) == 2


def test_equal_rows_are_paired_before_close_ones() -> None:
    """Else the first could take the only partner of the second."""
    one, close, far = 1.0, 1.0 + 0.8e-12, 1.0 + 1.6e-12
    assert difference([close, one], [one, far]) == []
    assert difference([one, one, close], [one, one]) == [f"+ {close!r}"]


def test_the_difference_is_readable_and_in_order() -> None:
    found = [Row(user="bob", millis=5.0), Row(user="ada", millis=180.25)]
    wanted = [Row(user="ada", millis=180.5), Row(user="bob", millis=5.0)]
    assert difference(found, wanted) == [
        "+ {'millis': 180.25, 'user': 'ada'}",
        "- {'millis': 180.5, 'user': 'ada'}",
    ]
