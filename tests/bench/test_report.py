"""Straight lines through points."""

import pytest

from bench.report import determination, slope


def test_a_line_explains_what_lies_on_it_and_nothing_of_what_does_not_rise() -> None:
    line = [(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]
    assert slope(line) == pytest.approx(2)
    assert determination(line) == pytest.approx(1)
    assert determination([(0.0, 1.0), (1.0, 2.0), (2.0, 1.0)]) == pytest.approx(0)
    assert determination([(0.0, 1.0), (1.0, 1.0)]) == 1
