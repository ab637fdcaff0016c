"""Restart policies, back-off, quantities."""

from decimal import Decimal

import pytest

from streamgraft_local.node.quantities import in_units, parse
from streamgraft_local.node.restarts import delay_seconds, restarts


@pytest.mark.parametrize(
    ("policy", "after_success", "after_failure"),
    [("Always", True, True), ("OnFailure", False, True), ("Never", False, False)],
)
def test_policies(policy: str, after_success: bool, after_failure: bool) -> None:
    assert restarts(policy, 0) is after_success
    assert restarts(policy, 1) is after_failure


def test_delays_double_up_to_a_minute() -> None:
    delays = [delay_seconds(streak) for streak in (1, 2, 3, 6, 7, 8, 1000)]
    assert delays == [1, 2, 4, 32, 60, 60, 60]


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
    assert parse(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1i", "1Xi", "Gi"])
def test_no_quantities(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        parse(text)


def test_units_round_up() -> None:
    assert in_units("1500m", "1") == "2"
    assert in_units("1025", "1Ki") == "2"
    assert in_units("1024", "1Ki") == "1"
