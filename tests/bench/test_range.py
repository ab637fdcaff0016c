"""What the benchmark of ranges keeps of runs before."""

import json
import shutil
from pathlib import Path

import pytest

from bench import report
from bench.range import Result, figures, write


def result(cpu: float, latency: float = 0.5) -> Result:
    """Return what a case showed."""
    return Result(cpu, [latency], 0, 0.1, 0.2)


def test_a_case_is_told_with_what_it_is_set_beside_in_the_same_run() -> None:
    found = figures({"state.1": result(0.8), "state.8": result(1.0), "realtime.8": result(0.5)})
    assert (found["cpu_cores_beside.state.8"], found["cpu_ratio.state.8"]) == (0.8, 1.25)
    found = figures({"state.8": result(0.4, 0.7), "hybrid.8": result(0.5)})
    assert found["cpu_cores_beside.hybrid.8"] == 0.4
    assert found["latency_p50_s_beside.hybrid.8"] == 0.7
    assert not any("ratio" in name or "beside.state" in name for name in found)


def test_figures_of_cases_that_do_not_run_stay_with_their_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(shutil.copy(report.RESULTS / "range.json", tmp_path))
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    text = file.read_text()
    write({}, "2026-12-01")
    assert file.read_text() == text, "it has nothing that the benchmark does not write"
    before = json.loads(text)
    write({"state.1": result(0.5), "state.64": result(1.0)}, "2026-12-01")
    now = json.loads(file.read_text())
    assert now["figures"]["cpu_ratio.state.64"] == 2
    changed = {
        name for name, value in now["figures"].items() if value != before["figures"].get(name)
    }
    assert {name.partition(".")[2] for name in changed} == {"state.1", "state.64"}
    assert before["figures"].keys() <= now["figures"].keys()
    new = {"state.1": "2026-12-01", "state.64": "2026-12-01"}
    assert now["settings"]["run_on"] == before["settings"]["run_on"] | new
