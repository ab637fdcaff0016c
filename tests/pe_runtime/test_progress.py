"""Gauges of partitions: who has them when a shard goes while Kafka is asked. Kafka is played."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from streamgraft_common.pe_metadata import InputPort, PeMetadata
from streamgraft_pe_runtime import connections
from streamgraft_pe_runtime import progress as module
from streamgraft_pe_runtime.arrangement import NOTE
from streamgraft_pe_runtime.brokers import Bounds
from streamgraft_pe_runtime.losses import Gap
from streamgraft_pe_runtime.metrics import PeMetrics
from streamgraft_pe_runtime.positions import Positions
from streamgraft_pe_runtime.progress import Progress
from streamgraft_pe_runtime.protocol.work import Load
from streamgraft_pe_runtime.query import ShardQuery
from streamgraft_pe_runtime.topic_ids import Topics
from streamgraft_pe_runtime.watched import LOAD_SECONDS, Watched

SHARDS = (0, 1, 2, 3)
PORT = InputPort(
    port=0, stream="s", topic="t", partitions=4, bootstrap_servers="b:1", operator="work"
)
METADATA = PeMetadata(
    namespace="default",
    job="j",
    pe_id=1,
    stage_name="work",
    region="r",
    channel=0,
    shard_count=4,
    operators=["work"],
    inputs=[PORT],
    outputs=[],
    checkpoint_path="p",
    trigger_seconds=1.0,
    bundle_digest="d",
)


class PlayedBrokers:
    """Ten records in each partition; something may happen while they are asked."""

    meanwhile: list[Callable[[], object]] = []
    published: list[Positions] = []
    logs: dict[str, tuple[int, int]] = {}
    """Bounds of all partitions, by brokers."""

    def __init__(self, name: str, _group: str, settings: object) -> None:
        """Nobody is connected to."""
        self.settings = settings
        self._log = self.logs.get(name, (0, 10))

    def bounds(self, keys: Iterable[tuple[str, int]]) -> Bounds:
        """Answer, late."""
        found = dict.fromkeys(keys, self._log)
        while self.meanwhile:
            self.meanwhile.pop()()
        return Bounds(found, dict.fromkeys(found, time.monotonic()))

    def publish(self, positions: Positions) -> None:
        """Take note."""
        self.published.append(dict(positions))


class PlayedQuery:
    """A query without batches."""

    def __init__(self, *, real_time: bool = False) -> None:
        self.real_time = real_time
        self.given_up = ""

    def give_up(self, why: str) -> None:
        """Take note."""
        self.given_up = why

    @property
    def interval_seconds(self) -> float:
        """Return the time between triggers."""
        assert not self.real_time
        return 1.0

    def reports(self, _after: int) -> list[dict[str, Any]]:
        """Return none."""
        return []

    def set_interval(self, _seconds: float) -> None:
        """Take another interval."""


class PlayedDriver:
    """A driver that has done nothing; something may happen at the beginning of a round."""

    def __init__(self) -> None:
        self.at_rounds: dict[int, Callable[[], object]] = {}
        self.busy = 0.0
        self.met: dict[tuple[str, str], int] = {}
        self.topics: dict[str, str] = {}
        self.asked = -1

    def busy_seconds(self) -> float:
        """Return what is set."""
        self.at_rounds.get(self.asked, lambda: None)()
        self.asked += 1
        return self.busy

    def malformed(self) -> dict[tuple[str, str], int]:
        """Return what is set."""
        return dict(self.met)

    def imported_topics(self, _operator: str) -> list[str]:
        """Return none."""
        return []

    def ids_of(self, _inputs: object) -> dict[str, str]:
        """Return what is set."""
        return dict(self.topics)

    def kafka_clients(self, metadata: PeMetadata) -> dict[str, dict[str, str]]:
        """Return that nothing is asked for."""
        return {port.bootstrap_servers: {} for port in metadata.inputs}

    def is_cut(self) -> bool:
        """Return False."""
        return False

    def passed_over(self) -> list[Gap]:
        """Return none."""
        return []


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> PeMetrics:
    monkeypatch.setattr(connections, "Brokers", PlayedBrokers)
    monkeypatch.setattr(module, "_PERIOD_SECONDS", 0.1)
    return PeMetrics(slots=1)


def query(*, real_time: bool = False) -> ShardQuery:
    """Return a played query as a real one."""
    return cast(ShardQuery, PlayedQuery(real_time=real_time))


def followed(metrics: PeMetrics, checkpoint: Path, driver: PlayedDriver | None = None) -> Progress:
    """Follow one query over all shards."""
    progress = Progress(METADATA, metrics, driver or PlayedDriver())
    progress.watch(SHARDS, query(), checkpoint)
    return progress


async def rounds(progress: Progress) -> None:
    """Let five rounds pass."""
    driver = cast(PlayedDriver, progress._driver)
    last = driver.asked + 6
    running = asyncio.ensure_future(progress.run())
    async with asyncio.timeout(60):
        while driver.asked < last and not running.done():
            await asyncio.sleep(0.01)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


def partitions(metrics: PeMetrics, name: str) -> set[int]:
    """Return the partitions that have a gauge."""
    lines = metrics.exposition().decode().splitlines()
    return {
        int(line.partition('partition="')[2].partition('"')[0])
        for line in lines
        if line.startswith(f"{name}{{")
    }


async def test_shard_that_goes_while_kafka_is_asked_leaves_no_gauge(
    metrics: PeMetrics, tmp_path: Path
) -> None:
    """Its age would grow, and hold the autoscaler for ever: a query over several shards is another
    one once some have gone, and does not know of them."""
    driver = PlayedDriver()
    progress = followed(metrics, tmp_path, driver)
    PlayedBrokers.meanwhile = [lambda: progress.release(3, tmp_path, publish=False)]
    others = SHARDS[:3]
    driver.at_rounds[1] = lambda: progress.watch(others, query(), tmp_path)
    await rounds(progress)
    for gauge in ("lag_records", "position_age_seconds"):
        assert partitions(metrics, f"streamgraft_pe_{gauge}") == {*others}


async def test_a_log_that_ends_before_the_position_has_no_lag_of_0(
    metrics: PeMetrics, tmp_path: Path
) -> None:
    """The topic was made anew: what an autoscaler reads has to become stale."""
    progress = followed(metrics, tmp_path)
    for watched in progress._queries:
        watched.positions |= {("t", 0): 20}
    await rounds(progress)
    at = metrics.position_ages._read_at
    assert max(at["t", "1"], at["t", "2"]) > at["t", "0"]
    why = progress.connections.now()["in", "s", "t"]
    assert "ends at 10, and the position is 20" in why


@pytest.mark.parametrize("often", [2, 1000])
async def test_positions_are_published_again_now_and_then(
    metrics: PeMetrics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, often: int
) -> None:
    """Brokers drop those of a stream that is idle for long: it would look as if all waited."""
    monkeypatch.setattr(module, "_CALM_PERIODS", often)
    PlayedBrokers.published = []
    text = '{"t": {"0": 7}}'
    for log, entry in (("offsets", f"v1\n{{}}\n{text}"), ("commits", "v1\n{}")):
        (tmp_path / log).mkdir()
        (tmp_path / log / "0").write_text(entry)
    await rounds(followed(metrics, tmp_path))
    assert PlayedBrokers.published[0] == {("t", 0): 7}
    assert (len(PlayedBrokers.published) > 1) == (often == 2)


@pytest.mark.parametrize("plan", [["t@a:1#1", "t@b:1#2"], ["t@a:1#1", "t@b:1#2", "t@a:1#1"]])
async def test_topics_of_one_name_in_two_clusters(
    metrics: PeMetrics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: list[str]
) -> None:
    """Each has its lag and its position; the start of one's log is no loss of the other's."""
    monkeypatch.setattr(PlayedBrokers, "logs", {"a:1": (0, 10), "b:1": (100, 110)})
    PlayedBrokers.published = []
    at = {"t@a:1#1": 7, "t@b:1#2": 105}
    lines = [json.dumps({"t": {"0": at[name]}}) for name in plan]
    for log, entry in (("offsets", "\n".join(["v1", "{}", *lines])), ("commits", "v1\n{}")):
        (tmp_path / log).mkdir()
        (tmp_path / log / "0").write_text(entry)
    (tmp_path / NOTE).write_text(json.dumps({"scans": plan, "outputs": {}}))
    ports = [
        PORT.model_copy(update={"bootstrap_servers": name, "stream": name, "partitions": 1})
        for name in ("a:1", "b:1")
    ]
    metadata = METADATA.model_copy(update={"inputs": ports, "shard_count": 1})
    progress = Progress(metadata, metrics, PlayedDriver())
    progress.watch((0,), query(), tmp_path)
    await rounds(progress)
    lines = metrics.exposition().decode().splitlines()
    for brokers, lag in (("a:1", 3.0), ("b:1", 5.0)):
        assert f'streamgraft_pe_lag_records{{partition="0",topic="t@{brokers}"}} {lag}' in lines
    assert {("t@a:1", 0): 7} in PlayedBrokers.published
    assert {("t@b:1", 0): 105} in PlayedBrokers.published
    assert progress.left_out.losses.unreported() == {}


async def test_input_that_goes_takes_its_gauges_along(metrics: PeMetrics, tmp_path: Path) -> None:
    progress = followed(metrics, tmp_path)
    await rounds(progress)
    assert partitions(metrics, "streamgraft_pe_lag_records") == set(SHARDS)
    progress.replan(METADATA.model_copy(update={"inputs": []}))
    other = PORT.model_copy(update={"topic": "u", "stream": "other"})
    progress.replan(METADATA.model_copy(update={"inputs": [other]}))
    await rounds(progress)
    lines = metrics.exposition().decode().splitlines()
    lags = [line for line in lines if line.startswith("streamgraft_pe_lag_records{")]
    assert len(lags) == len(SHARDS)
    assert all('topic="u"' in line for line in lags)


@pytest.mark.parametrize("known", [{}, {"t": "1"}])
async def test_a_topic_that_was_replaced_is_noticed_though_brokers_told_nothing_at_the_start(
    metrics: PeMetrics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: dict[str, str]
) -> None:
    """The note is of before; without one, the first answer counts."""
    monkeypatch.setattr(module, "_CALM_PERIODS", 1)
    Topics([tmp_path / "0"], [PORT]).confirm(known)
    driver, played = PlayedDriver(), PlayedQuery()
    progress = Progress(METADATA, metrics, driver)
    topics = Topics([tmp_path / "0"], [PORT])
    topics.confirm({})
    progress.watch(SHARDS, cast(ShardQuery, played), tmp_path, topics)
    driver.topics = {"t": "1"}
    await rounds(progress)
    assert played.given_up == ""
    driver.topics = {"t": "2"}
    await rounds(progress)
    assert "t is another topic of that name" in played.given_up


def malformed(metrics: PeMetrics) -> list[str]:
    """Return the series of malformed records."""
    lines = metrics.exposition().decode().splitlines()
    return [line for line in lines if line.startswith("streamgraft_pe_malformed_records_total{")]


SOURCE = PORT.model_copy(update={"external": True, "operator": "read", "topic": "in"})
READS = METADATA.model_copy(update={"inputs": [SOURCE, PORT]})


async def test_the_first_malformed_record_is_an_increase(
    metrics: PeMetrics, tmp_path: Path
) -> None:
    """So the 0 is there when the query starts; streams between PEs have none."""
    driver = PlayedDriver()
    progress = Progress(READS, metrics, driver)
    progress.watch(SHARDS, query(), tmp_path)
    series = 'streamgraft_pe_malformed_records_total{operator="read",topic="in"}'
    assert malformed(metrics) == [f"{series} 0.0"]
    driver.met["read", "in"] = 1
    await rounds(progress)
    assert malformed(metrics) == [f"{series} 1.0"]


async def test_malformed_records_are_of_the_pe_that_met_them(
    metrics: PeMetrics, tmp_path: Path
) -> None:
    """Those of its last batch too; the driver counts on for the next PE of our pod."""
    driver = PlayedDriver()
    progress = Progress(READS, metrics, driver)
    progress.watch(SHARDS, query(), tmp_path)
    driver.met["read", "in"] = 3
    for shard in SHARDS:
        progress.release(shard, tmp_path, publish=False)
    assert malformed(metrics)[0].endswith(" 3.0")
    metrics.begin_anew()
    await rounds(progress)
    assert malformed(metrics) == []
    progress.watch(SHARDS, query(), tmp_path)
    driver.met["read", "in"] = 5
    await rounds(progress)
    assert malformed(metrics)[0].endswith(" 2.0")


async def test_mode_that_an_edit_changes_is_that_of_the_next_query(
    metrics: PeMetrics, tmp_path: Path
) -> None:
    """Until that has started the one of before runs, and has no triggers if it was real-time."""
    real = METADATA.model_copy(update={"real_time": True, "slots": 4})
    progress = Progress(real, metrics, PlayedDriver())
    progress.watch(SHARDS, query(real_time=True), tmp_path)
    progress.replan(METADATA)
    await rounds(progress)
    assert partitions(metrics, "streamgraft_pe_lag_records") == set(SHARDS)


async def test_time_that_is_measured_in_another_mode_does_not_count(metrics: PeMetrics) -> None:
    """Tasks of real-time mode last for as long as their query: hours, when they have ended."""
    real = METADATA.model_copy(update={"real_time": True, "slots": 4})
    driver = PlayedDriver()
    progress = Progress(real, metrics, driver)
    driver.busy = 5000.0
    progress.replan(METADATA)
    driver.busy += 2.0
    await rounds(progress)
    assert "streamgraft_pe_busy_seconds_total 2.0" in metrics.exposition().decode()


@pytest.mark.parametrize(("real_time", "busy"), [(False, 0.5), (True, None)])
def test_batches_of_real_time_mode_say_nothing_of_the_load(
    tmp_path: Path, real_time: bool, busy: float | None
) -> None:
    """One follows the other: each key group would seem to be busy all the time."""
    found = query(real_time=real_time)
    watched = Watched((0,), found, tmp_path, {}, unclean=False, since=0.0, lags={("t", 0): 3})
    watched.batch_seconds = {0: LOAD_SECONDS / 2}
    watched.measure_load(LOAD_SECONDS)
    assert watched.loads == {0: Load(busy, 3)}
