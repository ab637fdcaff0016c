"""Kubernetes quantities."""

from fractions import Fraction
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_common.quantities import LONGEST, NotAQuantity, in_units, parse
from streamgraft_common.resources.base import Quantity

(PATTERN,) = (item.pattern for item in get_args(Quantity)[1].metadata if hasattr(item, "pattern"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", "1"),
        ("100m", "0.1"),
        ("1.5Gi", str(3 * 2**29)),
        ("2k", "2000"),
        ("1e3", "1000"),
        ("1E", str(10**18)),
        ("-1Ki", "-1024"),
    ],
)
def test_quantities(text: str, value: str) -> None:
    assert parse(text) == Fraction(value)


@pytest.mark.parametrize(
    "text",
    ["", "x", "1 Gi", "1i", "1Xi", "Gi", ".", "1.2.3", "1 ", "1e99999999", "1e-999", "1" * 5000],
)
def test_no_quantities(text: str) -> None:
    """Those of so many digits would keep who reads them busy for minutes."""
    with pytest.raises(NotAQuantity, match="not a quantity"):
        parse(text)


@given(st.from_regex(PATTERN, fullmatch=True).filter(lambda text: len(text) <= LONGEST))
def test_what_the_definitions_admit_can_be_read(text: str) -> None:
    assert parse(text) >= 0


def test_units_round_up() -> None:
    assert in_units("1500m", "1") == "2"
    assert in_units("1025", "1Ki") == "2"
    assert in_units("1024", "1Ki") == "1"
    assert in_units("7", "0") == "7"
