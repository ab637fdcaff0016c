"""What the benchmark of consistent regions makes of files, counts and results."""

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import consistent, cut_costs, report
from bench.consistent import CASES, derived, of_case, write
from bench.counts import Progress, wrong
from bench.cut_costs import CostResult
from bench.region_kills import KillResult
from bench.staged_files import BatchFiles
from bench.traffic import Arrival, Arrivals


def counts(*items: tuple[str, int]) -> list[Arrival]:
    """Return results from (key, count)."""
    return [Arrival(0.0, 0, key, count) for key, count in items]


def test_counts_tell_of_losses_and_doubles() -> None:
    # Five records: three of the first key, two of the second.
    exact = counts(("a", 1), ("b", 2), ("a", 3))
    assert wrong(["a", "b"], 5, exact) == (0, 0)
    assert wrong(["a", "b"], 5, exact[:2]) == (2, 0)
    assert wrong(["a", "b"], 5, [*exact, *counts(("a", 4))]) == (0, 1)
    assert wrong(["a", "b"], 5, [*exact, *counts(("b", 2))]) == (0, 1), "the same result again"
    assert wrong(["a", "b"], 3, []) == (3, 0)


def test_progress_is_the_sum_of_the_newest_counts() -> None:
    arrivals = Arrivals(counts(("a", 1), ("b", 2)))
    progress = Progress(arrivals)
    assert progress.records() == 3
    arrivals.items.append(Arrival(7.0, 0, "a", 4))
    assert (progress.records(), progress.at) == (6, 7.0)


def put(folder: Path, where: str, *ids: int) -> None:
    """Put a batch of results aside, or make it final."""
    file = folder / where
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps([{"id": number, "key": "a", "count": 1} for number in ids]))


def test_a_region_flows_when_every_shard_has_later_records_of_another_checkpoint(
    tmp_path: Path,
) -> None:
    files = BatchFiles(tmp_path)
    put(tmp_path, "staged/0/one/5", 10, 11)
    put(tmp_path, "staged/1/two/6", 12)
    old = files.incarnations()
    assert (old, files.newest_id()) == ({"one", "two"}, 12)
    put(tmp_path, "staged/0/one/6", 13)  # before the rollback
    put(tmp_path, "staged/0/three/6", 12, 13)
    put(tmp_path, "staged/1/four/7", 12)  # comes again
    assert files.flowing(2, 13, old) is None
    put(tmp_path, "final/1_four_8", 14)
    last = (tmp_path / "final/1_four_8").stat().st_mtime
    assert files.flowing(2, 13, old) == last
    assert [item.id for item in files.final()] == [14]


def test_figures_of_cases_are_kept_and_others_follow_from_them() -> None:
    measured = {
        **KillResult([10.0, 12.0], 2, 0, 0).figures("pes.2"),
        **KillResult([20.0, 14.0], 2, 1, 0).figures("pes.4"),
        **KillResult([1.0, 2.0], 2, 0, 0).figures("warm"),
        **CostResult([0.1, 0.2], 1000.0, 0, 0, 0).figures("none"),
        **CostResult([0.1, 0.4], 900.0, 6, 0, 2).figures("10s"),
    }
    told = derived(measured)
    assert (told["recovery_s_p50"], told["recovery_s_max"]) == (12, 20)
    assert told["recovery_s_p50.keys.1000"] == told["recovery_s_p50.pes.4"] == 14
    assert told["recovery_s_p50.warm"] == 1
    assert told["overhead_percent_10s"] == pytest.approx(10)
    assert (measured["latency_p99_s.10s"], measured["cuts.10s"]) == (0.4, 6)
    assert (told["kills"], told["rollbacks"]) == (6, 6)
    assert (told["lost"], told["duplicated"]) == (1, 2)
    both = told | measured
    again = {name: value for case in CASES for name, value in of_case(both, case).items()}
    assert again == measured


def test_figures_of_the_torture_stay_when_cases_are_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    report.note("consistent", {"torture_runs": 100, "torture_wrong": 0})
    write({"lost.warm": 0}, ["warm"])
    report.note("consistent", {"torture_runs": 101})
    figures = report.read("consistent")["figures"]
    assert (figures["torture_runs"], figures["torture_wrong"]) == (101, 0)
    assert figures["lost.warm"] == 0


def test_what_is_kept_is_what_the_benchmark_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = json.loads(Path(shutil.copy(report.RESULTS / "consistent.json", tmp_path)).read_text())
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(consistent, "PLOTS", tmp_path)
    write({}, [])
    now = report.read("consistent")
    assert now["figures"] == before["figures"]
    assert now["settings"] | {"cores": before["settings"]["cores"]} == before["settings"]
    assert now["settings"]["saturated_seconds"] == {"none": 45, "1s": 45, "10s": 45, "60s": 60}


async def test_cuts_are_counted_while_throughput_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []

    @asynccontextmanager
    async def running(*_: object) -> AsyncIterator[None]:
        yield

    async def feed(_: object, progress: Progress, seconds: float) -> None:
        done.append(seconds)
        progress.at += seconds

    async def look(*_: object) -> int:
        done.append("looked")
        return done.count("looked")

    async def nothing(*_: object) -> list[float]:
        return []

    probe, load = SimpleNamespace(arrivals=Arrivals([])), SimpleNamespace(sent=0, rate=0.0)
    replaced = {
        "application": running,
        "create_topic": lambda *_: None,
        "Probe": lambda *_: nullcontext(probe),
        "Load": lambda *_: nullcontext(load),
        "_latencies": nothing,
        "_until": nothing,
        "_feed": feed,
        "_cuts": look,
    }
    for name, instead in replaced.items():
        monkeypatch.setattr(cut_costs, name, instead)
    cluster = SimpleNamespace(bootstrap_servers="")
    found = await cut_costs.costs(cluster, tmp_path, "cuts60s", 60.0)  # type: ignore[arg-type]
    assert done == [cut_costs.WARM_SECONDS, "looked", 60.0, "looked"]
    assert found.cuts == 1
