"""Kubernetes quantities."""

from fractions import Fraction

import pytest

from streamgraft_common.quantities import in_units, parse


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


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1i", "1Xi", "Gi", ".", "1.2.3", "1 "])
def test_no_quantities(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        parse(text)


def test_units_round_up() -> None:
    assert in_units("1500m", "1") == "2"
    assert in_units("1025", "1Ki") == "2"
    assert in_units("1024", "1Ki") == "1"
    assert in_units("7", "0") == "7"
