"""What the benchmark of policies makes of its windows and loads."""

from typing import Any

import pytest

from bench import policies, traces


def test_the_worst_and_the_best_of_all_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "windows", lambda: [-0.05, 0.001, 0.0])
    monkeypatch.setattr(policies, "window", lambda over: {"over": over})
    assert policies.elsewhere() == {
        "demand_forecast.windows.over": 0.001,
        "demand_forecast.windows.over_least": -0.05,
    }


def test_the_worst_load_counts_for_each_figure() -> None:
    each = ("violation_ratio", "changes_per_day", "pod_hours_ratio")
    measured: dict[str, Any] = {
        f"dear.{load.__name__}.{figure}": number if figure == "changes_per_day" else -number
        for number, load in enumerate(policies.LOADS)
        for figure in each
    }
    assert policies.worst(measured, "dear") == {
        "dear.violation_ratio": 0,
        "dear.changes_per_day": 2,
        "dear.pod_hours_ratio": 0,
    }


def test_a_dear_change_is_priced_by_the_largest_width() -> None:
    assert policies.DEAR.hours(12) == 9.0
