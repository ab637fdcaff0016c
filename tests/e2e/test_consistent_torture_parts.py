"""The judgement of the torture of consistent regions: it must find what is wrong."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest
from tests.e2e.torture.consistent.__main__ import KEPT_ROUNDS, tell
from tests.e2e.torture.consistent.application import folder as folder_parameter
from tests.e2e.torture.consistent.application import look, publish, put_aside
from tests.e2e.torture.consistent.outcome import Lines
from tests.e2e.torture.consistent.rounds import (
    BLOCK,
    MOMENTS,
    OF_PODS,
    POLICIES,
    POLICY_ROUNDS,
    VICTIMS,
    rounds,
)
from tests.e2e.torture.consistent.run import Verdict, written
from tests.e2e.torture.consistent.verification import Comparison, Line
from tests.e2e.torture.schedule import OF_PROGRAMS, PLACES
from tests.e2e.torture.verification import Input, Result

from bench import report
from streamgraft import Batch, Cut

INPUTS = [Input("a", 0), Input("b", 1), Input("a", 2), Input("a", 3), Input("b", 4)]
RESULTS = [Result("a", 1, 0), Result("b", 1, 1), Result("a", 3, 5), Result("b", 2, 5)]
LINES = [Line(item.key, item.id, True) for item in INPUTS]


def test_good_run_in_pieces() -> None:
    comparison = Comparison()
    assert comparison.take(INPUTS[:2], RESULTS[:3], LINES[:1]) == []
    assert not comparison.complete(2)
    assert comparison.take(INPUTS[2:], RESULTS[3:], LINES[1:]) == []
    assert comparison.complete(5)
    assert not comparison.complete(6)
    assert comparison.round_ends(0) == comparison.run_ends() == []


def test_what_a_rollback_writes_again_is_no_mistake_but_counted() -> None:
    comparison = Comparison()
    again = [Result("a", 2, 2), Result("a", 3, 5)]
    assert comparison.take(INPUTS, [*RESULTS, *again], LINES) == []
    assert comparison.complete(5)
    assert (comparison.round_ends(1), comparison.repeated) == ([], 1)


def test_the_newest_count_is_what_matters_even_if_a_greater_one_came_before() -> None:
    comparison = Comparison()
    comparison.take(INPUTS, [*RESULTS, Result("a", 2, 2)], LINES)
    assert comparison.lacking(5) == "1 records in counts"


@pytest.mark.parametrize(
    ("results", "lines"),
    [
        ([*RESULTS, Result("a", 2, 2), Result("a", 3, 5)], LINES),
        ([*RESULTS, RESULTS[-1]], LINES),
        ([*RESULTS, Result("b", 3, 6)], LINES),
        ([Result("a", 1, 2), *RESULTS[1:]], LINES),
        (RESULTS[:-1], LINES),
        (RESULTS, LINES[:-1]),
        (RESULTS, [*LINES, LINES[0]]),
        (RESULTS, [*LINES[:-1], replace(LINES[-1], key="a")]),
        (RESULTS, [*LINES, Line("a", 9, True)]),
        (RESULTS, [*LINES[:-1], replace(LINES[-1], prepared=False)]),
    ],
    ids=[
        "step back",
        "written twice",
        "counted twice",
        "another order",
        "not counted",
        "lost line",
        "double line",
        "another record",
        "from nowhere",
        "not prepared",
    ],
)
def test_what_is_wrong_is_found(results: list[Result], lines: list[Line]) -> None:
    comparison = Comparison()
    problems = comparison.take(INPUTS, results, lines)
    whole = comparison.complete(5)
    assert problems or not whole or comparison.round_ends(0) or comparison.run_ends()


def test_each_round_has_its_own_rollbacks() -> None:
    comparison = Comparison()
    comparison.take(INPUTS, RESULTS, LINES)
    assert comparison.round_ends(3) == []
    comparison.take([], [Result("a", 2, 2), Result("a", 3, 5)], [])
    assert comparison.round_ends(0) == ["counts of a: 1 steps back with 0 rollbacks"]


def test_rounds_are_those_of_the_seed() -> None:
    run = list(rounds(7, 40))
    assert run == list(rounds(7, 40))
    assert run != list(rounds(8, 40))
    before = [1, *(item.width for item in run)]
    changes = [item.moment == "width" for item in run]
    assert [old != new for old, new in pairwise(before)] == changes


@pytest.mark.parametrize("seed", range(20))
def test_each_kind_is_struck_amid_each_moment_in_a_block(seed: int) -> None:
    run = list(rounds(seed, 2 * BLOCK))
    for first in (0, BLOCK):
        block = run[first : first + BLOCK]
        struck = Counter((item.moment, item.kills[0].victim) for item in block)
        assert struck == dict.fromkeys(product(MOMENTS, VICTIMS), 1)
    for item in run:
        assert len({kill.victim for kill in item.kills}) == len(item.kills)
    policies = [item.policy for item in run]
    assert set(policies) == {*POLICIES}
    assert policies[:POLICY_ROUNDS] == ["never"] * POLICY_ROUNDS


def test_every_means_meets_every_place() -> None:
    kills = [kill for item in rounds(7, 400) for kill in item.kills]
    assert {(kill.victim, kill.means) for kill in kills} == {
        *product(PLACES, OF_PODS),
        *product({*VICTIMS} - {*PLACES}, OF_PROGRAMS),
    }


def test_an_edit_changes_the_policy(tmp_path: Path) -> None:
    texts = [written(tmp_path, policy).read_text() for policy in POLICIES]
    assert [text.count('"failure"] = "failure"') for text in texts] == [0, 1]


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lines:
    """What the application's sink function makes final in a folder."""
    monkeypatch.setattr(folder_parameter, "value", str(tmp_path))
    return Lines(tmp_path)


def batch(number: int) -> Batch:
    return Batch(number, writer="w", incarnation="i")


def test_a_batch_that_comes_again_is_final_once_and_later_ones_wait(lines: Lines) -> None:
    cut = Cut(number=1, savepoint="s", writer="w", incarnation="i", shard=0, last_batch=4)
    put_aside(batch(4), [(0, "a"), (1, "b")])
    put_aside(batch(4), [(0, "a"), (1, "b")])
    put_aside(batch(5), [(2, "a")])
    look(cut)
    assert list(lines.read()) == []
    for _ in range(2):  # a commit may come again, too
        publish(cut)
    assert list(lines.read()) == [Line("a", 0, True), Line("b", 1, True)]
    publish(replace(cut, number=2, last_batch=5))
    assert list(lines.read()) == [Line("a", 2, False)]


def test_a_short_run_leaves_the_figures_of_a_long_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    tell(Verdict(runs=KEPT_ROUNDS, seconds=[1.0]), 1)
    tell(Verdict(runs=KEPT_ROUNDS - 1, wrong=1, seconds=[1.0]), 2)
    assert report.read("torture-consistent")["settings"]["seed"] == 1
    figures = report.read("consistent")["figures"]
    assert (figures["torture_runs"], figures["torture_wrong"]) == (KEPT_ROUNDS, 0)
