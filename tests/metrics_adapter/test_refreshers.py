"""Signals and rules are refreshed each for itself: what one of them waits for delays no other."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from streamgraft_metrics_adapter.prometheus.refresher import Refresher, Rhythm
from streamgraft_metrics_adapter.prometheus.source import Row, Source, SourceError
from streamgraft_metrics_adapter.rules import rule_refresher
from streamgraft_metrics_adapter.rules.configuration import MetricRule
from streamgraft_metrics_adapter.rules.rule_metrics import RuleMetrics
from streamgraft_metrics_adapter.rules.rule_refresher import AT_ONCE, RuleRefresher

SECONDS = 0.02
NAMESPACES = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "resource": "namespaces",
    "nameLabel": "namespace",
}


class SourceOfThree:
    """Answers with no rows; rules called `hanging…` wait first, and with `broken…` they fail."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.released = asyncio.Event()
        self.answered = asyncio.Condition()

    async def rows(self, name: str, promql: str, evaluated_at: float) -> Iterator[Row]:
        """Answer the query of a rule (object/name), or of the signals."""
        rule = name.rpartition("/")[2]
        async with self.answered:
            self.asked.append(rule)
            self.answered.notify_all()
        if rule.startswith("hanging"):
            await self.released.wait()
        if rule.startswith(("hanging", "broken")):
            raise SourceError("no answer")
        return iter(())

    async def until_asked(self, rule: str, times: int) -> None:
        """Wait until a query was asked so many times."""
        async with asyncio.timeout(20), self.answered:
            await self.answered.wait_for(lambda: self.asked.count(rule) >= times)


class Signals:
    """A consumer of one query; the first time it fails as nobody foresaw."""

    def __init__(self) -> None:
        self.refreshes = 0

    async def refresh(self, evaluated_at: float, source: Source) -> None:
        """Ask."""
        self.refreshes += 1
        if self.refreshes == 1:
            raise ZeroDivisionError
        await source.rows("signals", "signals", evaluated_at)


def rules(names: Sequence[str]) -> RuleMetrics:
    """Return rules of these names."""
    rule = {"object": NAMESPACES, "series": "x", "query": "x"}
    return RuleMetrics(MetricRule.model_validate({**rule, "name": name}) for name in names)


@pytest.mark.parametrize("others", ["hanging", "broken"])
async def test_rules_of_others_delay_nothing(others: str) -> None:
    """As many hang as there are places for queries but one, and the rest goes on."""
    source = SourceOfThree()
    names = [f"{others}-{number}" for number in range(AT_ONCE - 1)]
    running = [
        asyncio.create_task(Refresher(source, Signals(), SECONDS).run()),
        asyncio.create_task(RuleRefresher(source, rules([*names, "good"]), SECONDS).run()),
    ]
    try:
        await source.until_asked("good", 5)
        await source.until_asked("signals", 5)
    finally:
        source.released.set()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def test_a_rule_that_fails_rests_longer_and_longer() -> None:
    source = SourceOfThree()
    running = asyncio.create_task(RuleRefresher(source, rules(["broken", "good"]), SECONDS).run())
    try:
        await source.until_asked("good", 40)
        assert source.asked.count("broken") < 8
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_rules_that_left_are_asked_no_more() -> None:
    source, metrics = SourceOfThree(), rules(["old"])
    running = asyncio.create_task(RuleRefresher(source, metrics, SECONDS).run())
    try:
        await source.until_asked("old", 1)
        metrics.replace([metric.rule for metric in rules(["new"]).all()])
        await source.until_asked("new", 1)
        before = source.asked.count("old")
        await source.until_asked("new", 4)
        assert source.asked.count("old") <= before + 1
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def test_evaluations_are_at_whole_multiples_in_every_replica() -> None:
    rhythm = Rhythm(15.0)
    assert rhythm.evaluation_time(1000.0) == 990.0
    assert rhythm.evaluation_time(1005.9) == 990.0  # samples of 1005 are still coming in
    assert rhythm.evaluation_time(1006.1) == 1005.0
    assert rhythm.wait_seconds(990.0, 1000.0) == pytest.approx(6.0)
    assert rhythm.wait_seconds(990.0, 1100.0) == 0.0


async def test_a_rule_that_failed_for_days_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubled so many times, a rest is no number any more."""
    monkeypatch.setattr(rule_refresher, "LONGEST_REST_SECONDS", 0.0)
    monkeypatch.setattr(rule_refresher, "REST_FACTOR", 0.0)
    source = SourceOfThree()
    running = asyncio.create_task(RuleRefresher(source, rules(["broken"]), 0.0001).run())
    await source.until_asked("broken", 1100)
    running.cancel()
