"""What the adapter learns from the days that Prometheus remembers; a history is played here.

`test_load_history_of_prometheus` reads them from the real one.
"""

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from streamgraft_autoscaler.forecast import (
    BUCKET_SECONDS,
    DAY_BUCKETS,
    MEMORY_BUCKETS,
    Forecast,
)
from streamgraft_common.kube import KubeClient, Store
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_metrics_adapter.learning.forecasts import Forecasts
from streamgraft_metrics_adapter.learning.load_history import (
    FIRST_RETRY_SECONDS,
    SETTLING_SECONDS,
    LoadHistoryReader,
)
from streamgraft_metrics_adapter.prometheus.source import RangeSource, Series, SourceError
from streamgraft_metrics_adapter.regions import RegionCache

BEGIN = 20_000 * DAY_BUCKETS
"""The quarter of an hour in which the history begins: a midnight."""


def wave(job: str, bucket: int) -> float:
    """Return the records/s of a quarter: a day like any other, of a height of its own."""
    height = 100.0 + len(job) + bucket // DAY_BUCKETS % 3
    return height * (1 + math.sin(bucket / DAY_BUCKETS * math.tau) / 2)


class PlayedHistory:
    """Answers range queries from a function of job and quarter: records/s, None where there is no
    sample; remembers the ranges asked for, in quarters."""

    def __init__(self, rate: Callable[[str, int], float | None] = wave, *jobs: str) -> None:
        self.rate = rate
        self.jobs = jobs or ("j",)
        self.asked: list[tuple[int, int]] = []
        self.queries: list[str] = []
        self.largest = MEMORY_BUCKETS
        self.away = False

    async def series(
        self, name: str, promql: str, times: tuple[float, float], step: float
    ) -> Iterator[Series]:
        """Evaluate at the end of each quarter."""
        first, last = (round(time / BUCKET_SECONDS) - 1 for time in times)
        assert times == ((first + 1) * BUCKET_SECONDS, (last + 1) * BUCKET_SECONDS)
        assert step == BUCKET_SECONDS
        if self.away or last - first + 1 > self.largest:
            raise SourceError("too much, or away")
        self.asked.append((first, last))
        self.queries.append(promql)
        return iter([self._of(job, range(first, last + 1)) for job in self.jobs])

    def _of(self, job: str, buckets: range) -> Series:
        labels = {"namespace": "ns", "streams_job": job, "region": "r"}
        rates = ((bucket, self.rate(job, bucket)) for bucket in buckets if bucket >= BEGIN)
        return labels, [
            ((bucket + 1) * BUCKET_SECONDS, rate) for bucket, rate in rates if rate is not None
        ]


class Adapter:
    """What of an adapter learns the days."""

    def __init__(self, history: RangeSource, *jobs: str) -> None:
        self.store = Store(KubeClient(KubeConfig(server="http://127.0.0.1:1")), "/none")
        self.store.synced.set()
        self.forecasts = Forecasts()
        self.cache = RegionCache(self.store)
        self.reader = LoadHistoryReader(history, self.cache, self.forecasts)
        for job in jobs or ("j",):
            self.add(job)

    def add(self, job: str, **autoscaling: Any) -> None:
        """Let a region come, or change."""
        spec = {"job": job, "region": "r", "width": 1, "maxWidth": 8, "key": ["k"]}
        body = PARALLEL_REGION.manifest(f"{job}-r", "ns", {**spec, "autoscaling": autoscaling})
        self.cache._changed(("ns", f"{job}-r"), None, body)

    def remove(self, job: str) -> None:
        """Let a region go."""
        self.cache._changed(("ns", f"{job}-r"), {}, None)

    async def at(self, bucket: float, job: str = "j") -> Forecast | None:
        """Look for what is new, as of so many quarters since the epoch, and return the forecast."""
        now = bucket * BUCKET_SECONDS
        await self.reader.look(now)
        return self.forecasts.of(("ns", job, "r"), now)


async def test_who_starts_knows_the_past_days() -> None:
    history = PlayedHistory()
    found = await Adapter(history).at(BEGIN + 4 * DAY_BUCKETS + 30.5)
    assert found is not None
    assert found.trusted
    expected = [wave("j", BEGIN + 3 * DAY_BUCKETS + 30 + number) for number in range(DAY_BUCKETS)]
    assert found.rates == pytest.approx(expected, rel=0.05)


async def test_one_query_a_day_and_no_more_than_is_remembered() -> None:
    history = PlayedHistory(wave, "j", "jj", "jjj")
    now = BEGIN + 100 * DAY_BUCKETS
    await Adapter(history, "j", "jj", "jjj").at(now + 0.5)
    assert len(history.asked) == MEMORY_BUCKETS / DAY_BUCKETS == 15
    assert history.asked[0][0] == now - MEMORY_BUCKETS
    assert history.asked[-1][1] == now - 1
    assert all(after[0] == before[1] + 1 for before, after in pairwise(history.asked))


async def test_later_only_what_is_over_is_read() -> None:
    history, begin = PlayedHistory(), BEGIN + 4 * DAY_BUCKETS
    adapter = Adapter(history)
    await adapter.at(begin + 0.5)
    history.asked.clear()
    await adapter.at(begin + 0.9)
    # The samples of its last scrape may still be on their way.
    await adapter.at(begin + 1 + SETTLING_SECONDS / BUCKET_SECONDS / 2)
    assert history.asked == []
    await adapter.at(begin + 1 + SETTLING_SECONDS / BUCKET_SECONDS)
    assert history.asked == [(begin, begin)]
    await adapter.at(begin + 4.5)
    assert history.asked == [(begin, begin), (begin + 1, begin + 3)]


@pytest.mark.parametrize("started", [0.01, 0.5, 0.99])
async def test_it_does_not_matter_when_a_replica_was_started(started: float) -> None:
    """Even in the middle of a quarter: it is read whole, as from the one that was always there."""
    history, begin = PlayedHistory(), BEGIN + 5 * DAY_BUCKETS
    old = Adapter(history)
    for quarter in range(10):
        await old.at(begin + quarter + 0.5)
    new = Adapter(history)
    await new.at(begin + 10 + started)
    for quarter in range(10, 14):
        now = begin + quarter + 0.995
        assert await old.at(now) == await new.at(now) is not None


async def test_a_new_region_is_read_at_once_and_by_itself() -> None:
    history, now = PlayedHistory(wave, "j", "new"), BEGIN + 5 * DAY_BUCKETS + 0.5
    adapter, whole = Adapter(history), Adapter(history, "j", "new")
    await adapter.at(now)
    history.asked.clear()
    history.queries.clear()
    adapter.add("new")
    assert await adapter.at(now, "new") == await whole.at(now, "new") is not None
    assert {'streams_job=~"new"' in query for query in history.queries[:15]} == {True}
    history.asked.clear()
    await adapter.at(now + 1)
    assert len(history.asked) == 1


async def test_who_left_or_asks_for_none_has_no_forecast() -> None:
    history, now = PlayedHistory(wave, "j", "other"), BEGIN + 5 * DAY_BUCKETS + 0.5
    adapter = Adapter(history)
    adapter.add("other", forecast=False)
    assert await adapter.at(now) is not None
    assert adapter.forecasts.of(("ns", "other", "r"), now * BUCKET_SECONDS) is None
    adapter.remove("j")
    assert await adapter.at(now) is None
    adapter.add("j")
    assert await adapter.at(now) is not None


@pytest.mark.parametrize("missing", [None, math.nan, math.inf, -5.0])
async def test_a_hole_of_an_hour_is_bridged(missing: float | None) -> None:
    """As after a restart of Prometheus; a negative rate is a topic that was created anew."""
    now = BEGIN + 4 * DAY_BUCKETS
    hole = range(now - 200, now - 196)

    def rate(job: str, bucket: int) -> float | None:
        return missing if bucket in hole else 100.0 + bucket % 2

    found = await Adapter(PlayedHistory(rate)).at(now + 0.5)
    assert found is not None
    assert found.error < 0.02
    assert all(99.0 < value < 102.0 for value in found.rates)


@pytest.mark.parametrize(("days_since", "known"), [(1.9, False), (2.1, True)])
async def test_after_a_longer_hole_a_history_begins(days_since: float, known: bool) -> None:
    now = BEGIN + 8 * DAY_BUCKETS
    hole_ended = now - round(days_since * DAY_BUCKETS)
    hole = range(hole_ended - 5, hole_ended)

    def rate(job: str, bucket: int) -> float | None:
        return None if bucket in hole else wave(job, bucket)

    assert (await Adapter(PlayedHistory(rate)).at(now + 0.5) is not None) is known


async def test_no_history_is_no_forecast_until_there_is_one() -> None:
    adapter = Adapter(PlayedHistory())
    assert await adapter.at(BEGIN + 0.5) is None
    assert await adapter.at(BEGIN + 2 * DAY_BUCKETS - 0.5) is None
    assert await adapter.at(BEGIN + 2 * DAY_BUCKETS + 0.5) is not None


async def test_while_prometheus_is_away_what_is_known_counts_for_an_hour() -> None:
    history, now = PlayedHistory(), BEGIN + 4 * DAY_BUCKETS + 0.5
    adapter = Adapter(history)
    before = await adapter.at(now)
    assert before is not None
    history.away = True
    assert await adapter.at(now + 1) == Forecast(before.rates[1:], before.error, before.trusted)
    assert await adapter.at(now + 5) is None
    history.away = False
    assert await adapter.at(now + 5) == await Adapter(history).at(now + 5) is not None


async def test_what_is_too_much_at_once_is_read_in_parts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    history, now = PlayedHistory(), BEGIN + 4 * DAY_BUCKETS + 0.5
    history.largest = 30
    adapter = Adapter(history)
    assert await adapter.at(now) is None
    assert f"next try in {FIRST_RETRY_SECONDS:g} s: too much, or away" in caplog.text
    tries = 1
    while (found := await adapter.at(now)) is None:
        tries += 1
    assert tries < 100
    asked = history.asked
    assert all(after[0] == before[1] + 1 for before, after in pairwise(asked))
    assert found == await Adapter(PlayedHistory()).at(now)
