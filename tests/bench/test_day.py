"""What the benchmark of a day makes of what it saw."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bench import day, policies, report
from bench.day import MINUTES, PEAK, Course, Sample, delays, load_of_the_day, picture
from bench.traffic import Arrival

SAMPLES = [
    Sample(seconds=0.0, rate=10.0, wanted=1, pods=1, pool=1),
    Sample(seconds=2.0, rate=20.0, wanted=2, pods=2, pool=0),
    Sample(seconds=5.0, rate=20.0, wanted=2, pods=2, pool=1),
    Sample(seconds=6.0, rate=10.0, wanted=1, pods=2, pool=1),
]
COURSE = Course(SAMPLES, [(0.5, 1.0), (1.5, 70.0), (1.6, 2.0), (5.0, 61.0)], lost=0, duplicated=0)


def test_figures() -> None:
    figures = COURSE.figures(8.0)
    assert figures["pod_seconds"] == 2 + 6 + 2
    assert figures["pool_pod_seconds"] == 2 + 0 + 1
    assert (figures["changes"], figures["width_max"]) == (2, 2)
    assert figures["violation_ratio"] == 2 / 8
    assert (figures["delay_p99_s"], figures["delay_max_s"]) == (70.0, 70.0)


def test_the_longest_delay_of_each_step() -> None:
    assert COURSE.longest_delays(1.0, 6) == [1.0, 70.0, 0.0, 0.0, 0.0, 61.0]
    assert COURSE.longest_delays(1.0, 2) == [1.0, 70.0]


def test_a_record_counts_when_it_comes_first() -> None:
    arrivals = [Arrival(10.0, 0, "a"), Arrival(13.0, 1, "a"), Arrival(19.0, 1, "a")]
    assert delays(arrivals, [9.0, 11.0, 12.0], first=1) == [(0.0, 2.0)]


def test_the_load_is_a_day_that_was() -> None:
    rates = load_of_the_day().rates
    assert (len(rates), max(rates)) == (MINUTES, PEAK)
    assert min(rates) == 0


def test_a_line_of_each_policy_in_the_widths_and_delays() -> None:
    drawn = picture(load_of_the_day(), {"demand": COURSE, "paper": COURSE}, speed=14_400.0)
    assert drawn.count("<polyline") == 1 + 2 + 2


async def test_what_has_run_is_written_though_the_next_policy_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def no_cluster(*_: object) -> AsyncIterator[None]:
        yield

    async def run(_: Any, __: Path, policy: str, *___: object) -> Course:
        if policy == "cpu":
            raise TimeoutError
        return COURSE

    monkeypatch.setattr(day, "running_cluster", no_cluster)
    monkeypatch.setattr(day, "run", run)
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(policies, "PLOTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["day", "14400"])
    with pytest.raises(TimeoutError):
        await day.main()
    figures = report.read("day-14400")["figures"]
    assert {name.rpartition(".")[2] for name in figures} == {"demand", "paper"}
    assert (tmp_path / "day-14400.svg").read_text().count("<polyline") == 1 + 2 + 2
