"""Figures of savepoints, from what was measured."""

import pytest

from bench.savepoint import GROUPS, MORE_GROUPS, TAKEN, WIDTH, WIDTHS, Restart, Taken, figures

PARTS = {"stop_s": 4.0, "drivers_s": 15.0, "flow_s": 1.04}


def test_lines_are_fitted_and_restarts_with_other_groups_compared() -> None:
    sizes = (10.0, 20.0, 40.0)
    same = [Restart(size, WIDTH, GROUPS, 20 + size / 10, PARTS, [1.0, 3.0]) for size in sizes]
    more = [Restart(size, WIDTH, MORE_GROUPS, 22 + size / 5, PARTS, [1.0]) for size in sizes]
    wide = Restart(40.0, 4, GROUPS, 21.5, PARTS, [0.5, 1.0, 1.5, 2.0])
    taken = [Taken(size, WIDTH, 1.0, 0.1) for size in sizes for _ in range(TAKEN)]
    taken += [Taken(41.0, width, 1.5, 0.2) for width in WIDTHS for _ in range(TAKEN)]
    found = figures(taken, [*more, *same, wide])
    assert found["still_s.10.0_mb"] == 1
    assert (found["still_s.width_2"], found["save_s.width_2"]) == (1, 0.1)
    assert (found["still_s.width_4"], found["save_s.width_1"]) == (1.5, 0.2)
    assert "still_s.41.0_mb" not in found
    assert found["restart_s.per_mb"] == pytest.approx(0.1)
    assert found["restart_s.r2"] == 1
    assert found["load_max_s.width_4"] == 2
    assert found["restart_s.width_2"] == 24
    assert (found["restart_drivers_s.width_4"], found["restart_flow_s.width_2"]) == (15, 1)
    # A tenth of a second more a megabyte, of which each channel reads just one: 8 / 4 / 2.
    assert found["dealt_out_s_per_mb_read"] == pytest.approx(0.1)
