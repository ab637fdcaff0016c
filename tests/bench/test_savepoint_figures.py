"""Figures of savepoints, from what was measured."""

import json
import shutil
from pathlib import Path

import pytest

from bench import report
from bench.savepoint import (
    GROUPS,
    MORE_GROUPS,
    SAVES,
    TAKEN,
    WIDTH,
    WIDTHS,
    Restart,
    Taken,
    figures,
    write,
)

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
    assert found["last_saved_mb"] == 41
    assert found["restart_s.per_mb"] == pytest.approx(0.1)
    assert found["restart_s.r2"] == 1
    assert found["load_max_s.width_4"] == 2
    assert found["restart_s.width_2"] == 24
    assert (found["restart_drivers_s.width_4"], found["restart_flow_s.width_2"]) == (15, 1)
    # A tenth of a second more a megabyte, of which each channel reads just one: 8 / 4 / 2.
    assert found["dealt_out_s_per_mb_read"] == pytest.approx(0.1)


def test_savepoints_by_width_take_the_place_of_their_own_figures_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(shutil.copy(report.RESULTS / "savepoint.json", tmp_path))
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    text = file.read_text()
    write({}, (), "2026-12-01")
    assert file.read_text() == text, "it has nothing that the benchmark does not write"
    before = json.loads(text)
    taken = [Taken(41.0, width, 1.5, 0.2) for width in (WIDTH, *WIDTHS) for _ in range(TAKEN)]
    write(figures(taken, [], [SAVES]), [SAVES], "2026-12-01")
    now = json.loads(file.read_text())
    changed = {name for name, value in now["figures"].items() if value != before["figures"][name]}
    by_width = {f"{what}.width_{width}" for what in ("still_s", "save_s") for width in (1, 2, 4)}
    assert changed == by_width | {"last_saved_mb"}
    assert now["figures"].keys() == before["figures"].keys()
    assert now["settings"]["run_on"] == before["settings"]["run_on"] | {SAVES: "2026-12-01"}
