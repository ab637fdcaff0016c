"""From Prometheus' answers to signals and reasons; a local server plays Prometheus' canned answers.

The queries themselves run against the real Prometheus in test_cluster_signals.
"""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from streamgraft_autoscaler import Capacity, Demand, NotReady, Reason, Utilization
from streamgraft_common.kube import KubeClient, Store
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_metrics_adapter import selectors
from streamgraft_metrics_adapter.learning.knowledge import Knowledge, Known
from streamgraft_metrics_adapter.prometheus.observations import ObservationBuilder
from streamgraft_metrics_adapter.prometheus.queries import INPUT_LABEL, QUERIES, Input, queries
from streamgraft_metrics_adapter.prometheus.refresher import Refresher
from streamgraft_metrics_adapter.prometheus.server import PrometheusServer
from streamgraft_metrics_adapter.prometheus.source import PrometheusSource, Row, SourceError
from streamgraft_metrics_adapter.regions import RegionCache
from streamgraft_metrics_adapter.settings import OWN_TARGETS
from streamgraft_metrics_adapter.signals.evaluation import SIGNALS, signals_of
from streamgraft_metrics_adapter.signals.provider import Provider, Reading
from streamgraft_metrics_adapter.status import NotFoundError, UnavailableError

WINDOW, MAX_AGE, REFRESH = 60.0, 30.0, 2.0
STEADY: dict[Input, float] = {
    Input.LAG: 600.0,
    Input.PARTITIONS: 4,
    Input.SAMPLE_TIME: 0.0,
    Input.POSITION_AGE: 1.0,
    Input.LAG_CHANGE: 10.0,
    Input.HISTORIES: 4,
    Input.RESETS: 0,
    Input.INPUT_RATE: 110.0,
    Input.PROCESSING_RATE: 100.0,
    Input.BUSY_SLOTS: 1.0,
    Input.WARM_SLOTS: 1.0,
    Input.BATCH_RATE: 1.0,
    Input.LARGEST_RATE: 27.5,
    Input.MEDIAN_RATE: 27.5,
    Input.STATE_BYTES: 0.0,
    Input.SLOTS: 1.0,
    Input.IDLE_SHARE: 0.5,
    Input.ELEMENTS: 2,
}
"""Two channels, each busy for half of the time; a batch of each a second. The sample
time is an age here."""


class CannedPrometheus:
    """A real HTTP server that answers the known queries with set values."""

    def __init__(self) -> None:
        self.values: dict[Input, float] = dict(STEADY)
        self.broken = False
        self.queries = 0
        names = {text: name for name, text in queries(WINDOW, MAX_AGE, REFRESH).items()}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.queries += 1
                name = names.get(parse_qs(urlsplit(self.path).query)["query"][0])
                body = json.dumps({"status": "success", "data": outer.data(name)}).encode()
                self.send_response(503 if outer.broken else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Keep quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def data(self, query: str | None) -> dict[str, Any]:
        """Return the answer to one query; nobody has learned anything."""
        parts = QUERIES[query] if query else ()
        rows = [self._row(part) for part in parts if part in self.values]
        return {"resultType": "vector", "result": rows}

    def _row(self, name: Input) -> dict[str, Any]:
        value = self.values[name]
        if name is Input.SAMPLE_TIME:
            value = time.time() - value
        labels = {"namespace": "ns", "streams_job": "flights", "region": "enrich"}
        stage = {"stage": "0", "topic": "t", INPUT_LABEL: name.value}
        return {"metric": labels | stage, "value": [0, str(value)]}

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def prometheus() -> Iterator[CannedPrometheus]:
    """A server of canned answers."""
    server = CannedPrometheus()
    yield server
    server.close()


def region(*, resizing: str = "False", name: str = "flights-enrich") -> dict[str, Any]:
    """Return a ParallelRegion of width 2, at most 4."""
    spec = {"job": "flights", "region": "enrich", "width": 2, "maxWidth": 4, "key": ["k"]}
    body = PARALLEL_REGION.manifest(name, "ns", spec, labels={"a": "1"})
    condition = {"type": "Resizing", "status": resizing, "reason": "WidthChanged"}
    return {**body, "status": {"width": 2, "conditions": [condition]}}


class FixedStore(Store):
    """A cache that was listed once."""

    def __init__(self, *items: dict[str, Any]) -> None:
        super().__init__(KubeClient(KubeConfig(server="http://127.0.0.1:1")), "/none")
        for item in items:
            self._items["ns", item["metadata"]["name"]] = item
        self.synced.set()


def provider_of(*items: dict[str, Any]) -> Provider:
    """Return a provider of these regions."""
    regions = RegionCache(FixedStore(*items))
    return Provider(
        regions,
        window_seconds=WINDOW,
        max_age_seconds=MAX_AGE,
        refresh_seconds=REFRESH,
        learned_from=OWN_TARGETS,
    )


async def refresh(provider: Provider, prometheus: CannedPrometheus) -> None:
    """Refresh once, as of now."""
    await Refresher(PrometheusSource(PrometheusServer(prometheus.url)), provider, 2.0).refresh(
        time.time()
    )


async def reading(prometheus: CannedPrometheus, metric: str, **state: str) -> Reading:
    """Return a signal after one refresh."""
    provider = provider_of(region(**state))
    await refresh(provider, prometheus)
    return provider.by_name("ns", "flights-enrich", metric)


def reason(found: Reading) -> Reason:
    """Return why a signal has no value."""
    assert isinstance(found.result, NotReady)
    with pytest.raises(UnavailableError, match=found.result.reason.value):
        found.signal()
    return found.result.reason


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("total_lag", 600.0),
        ("relative_lag_change_rate", 1.1),
        ("relative_lag_change_rate_gated", -1.1),
        ("utilization", 0.5),
        ("demand", 2.0),
        ("expected_demand", 2.0),
    ],
)
async def test_signals(prometheus: CannedPrometheus, metric: str, value: float) -> None:
    found = await reading(prometheus, metric)
    assert found.signal().value == pytest.approx(value)


async def test_amid_a_blackout_drivers_are_expected_all_the_same(
    prometheus: CannedPrometheus,
) -> None:
    """Widths stand still then; what is needed behind it can get ready."""
    item = region()
    item["spec"]["autoscaling"] = {"periods": [{"start": "00:00", "end": "00:00"}]}
    provider = provider_of(item)
    await refresh(provider, prometheus)
    assert reason(provider.by_name("ns", "flights-enrich", "demand")) is Reason.BLACKOUT
    found = provider.by_name("ns", "flights-enrich", "expected_demand")
    assert found.signal().value == pytest.approx(2.0)


async def test_the_gate_is_the_regions_own(prometheus: CannedPrometheus) -> None:
    """600 records wait, more every second: the paper's policy by the region's settings."""
    item = region()
    item["spec"]["autoscaling"] = {"lagThreshold": 500, "overshoot": 2}
    provider = provider_of(item)
    await refresh(provider, prometheus)
    found = provider.by_name("ns", "flights-enrich", "relative_lag_change_rate_gated")
    assert found.signal().value == pytest.approx(1.2)


async def test_demand_counts_what_waits_beyond_two_batches(prometheus: CannedPrometheus) -> None:
    found = (await reading(prometheus, "demand")).signal()
    assert isinstance(found, Demand)
    work = 110 * (1 + 2 / 60) + (600 - 2 * 110) / 60
    assert found.stages["0"].work == pytest.approx(work)


async def test_what_is_counted_in_offsets_becomes_records(prometheus: CannedPrometheus) -> None:
    """A fifth of the offsets have none: else a load of larger transactions seemed a smaller one."""
    prometheus.values[Input.RECORD_SHARE] = 0.8
    found = (await reading(prometheus, "demand")).signal()
    assert isinstance(found, Demand)
    work = 0.8 * (110 * (1 + 2 / 60) + (600 - 2 * 110) / 60)
    assert found.stages["0"].work == pytest.approx(work)
    capacity = found.stages["0"].load.capacity
    assert capacity is not None
    assert capacity.true_rate == pytest.approx(0.8 * 100)
    assert (await reading(prometheus, "total_lag")).signal().value == pytest.approx(480)
    assert (await reading(prometheus, "relative_lag_change_rate")).signal().value == 1.1


@pytest.mark.parametrize("share", [float("nan"), 0.0, -1.0, 1.0, 7.0, float("inf")])
async def test_a_share_that_tells_nothing_changes_nothing(
    prometheus: CannedPrometheus, share: float
) -> None:
    prometheus.values[Input.RECORD_SHARE] = share
    assert (await reading(prometheus, "total_lag")).signal().value == 600


async def test_queries_do_not_grow_with_regions(prometheus: CannedPrometheus) -> None:
    provider = provider_of(*(region(name=f"r{number}") for number in range(50)))
    await refresh(provider, prometheus)
    before = prometheus.queries
    await refresh(provider, prometheus)
    assert prometheus.queries - before == len(QUERIES) == 5


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (Input.PARTITIONS, 3, Reason.NO_DATA),
        (Input.HISTORIES, 3, Reason.NO_DATA),
        (Input.RESETS, 1, Reason.RESET),
        (Input.SAMPLE_TIME, 31.0, Reason.STALE),
        (Input.SAMPLE_TIME, float("nan"), Reason.STALE),
        (Input.POSITION_AGE, 15.1, Reason.STALE),
        (Input.POSITION_AGE, float("nan"), Reason.STALE),
        (Input.INPUT_RATE, float("nan"), Reason.NOT_A_NUMBER),
        (Input.BATCH_RATE, float("nan"), Reason.NOT_A_NUMBER),
        (Input.BUSY_SLOTS, float("inf"), Reason.WARMING_UP),
        (Input.WARM_SLOTS, 0.5, Reason.WARMING_UP),
        (Input.SLOTS, 0.0, Reason.WARMING_UP),
    ],
)
async def test_bad_input_is_a_reason(
    prometheus: CannedPrometheus, name: Input, value: float, expected: Reason
) -> None:
    prometheus.values[name] = value
    assert reason(await reading(prometheus, "demand")) is expected


@pytest.mark.parametrize("name", sorted(set(Input) - {Input.RECORD_SHARE}))
async def test_missing_input_is_never_a_number(prometheus: CannedPrometheus, name: Input) -> None:
    """Whatever is missing, some signal has no value, and none is served as if nothing were. Only
    the share of records isn't told by PEs of former releases."""
    before = {metric: (await reading(prometheus, metric)).signal().value for metric in SIGNALS}
    del prometheus.values[name]
    after = {metric: await reading(prometheus, metric) for metric in SIGNALS}
    results = {metric: found.result for metric, found in after.items()}
    values = {m: r.value for m, r in results.items() if not isinstance(r, NotReady)}
    assert len(values) < len(SIGNALS)
    assert values == pytest.approx({metric: before[metric] for metric in values})


async def test_every_stage_of_the_spec_is_needed(prometheus: CannedPrometheus) -> None:
    """A stage that nobody scrapes must not look as if nothing waited in front of it, or as if it
    idled: what is left may be the light stage beside a heavy one whose pods crash."""
    stages = [{"topics": ["t"]}, {"topics": ["between"]}]
    item = region()
    provider = provider_of({**item, "spec": {**item["spec"], "stages": stages}})
    await refresh(provider, prometheus)
    for metric in SIGNALS:
        found = provider.by_name("ns", "flights-enrich", metric)
        assert reason(found) is Reason.NO_DATA
        assert "between, which stage 1 reads" in found.result.message  # type: ignore[union-attr]


async def test_stages_count_what_they_weigh() -> None:
    """A heavy stage that is busy for nine tenths beside a light one that idles."""
    item = region()
    stages = [{"topics": ["t"], "weight": 3.0}, {"topics": ["t"]}]
    spec = {**item["spec"], "stages": stages, "width": 2}
    builder = ObservationBuilder()
    for stage, idle in (("0", 0.1), ("1", 0.9)):
        for name, value in {**STEADY, Input.IDLE_SHARE: idle}.items():
            labels = {"namespace": "ns", "streams_job": "flights", "region": "enrich"}
            builder.add(labels | {"stage": stage, "topic": "t", INPUT_LABEL: name.value}, value)
    (seen,) = builder.regions.values()
    (found,) = RegionCache(FixedStore({**item, "spec": spec})).all()
    known = Knowledge(WINDOW).of(found, 0.0)
    signal = signals_of(found, seen, known)["utilization"]
    assert isinstance(signal, Utilization)
    assert signal.value == pytest.approx(1 - (3 * 0.1 + 0.9) / 4)
    assert signal.elements == 4


@pytest.mark.parametrize(
    ("real_time", "median"), [([False], 0.1), ([True], 1.0), ([True, False], 0.1)]
)
async def test_hot_shards_may_meet_where_nobody_knows_them(
    real_time: list[bool], median: float
) -> None:
    """In real time no shard is known to be busy, so channels are not balanced by that."""
    item = region()
    stages = [{"topics": ["t"], "realTime": each} for each in real_time]
    builder = ObservationBuilder()
    for stage in range(len(stages)):
        for name, value in {**STEADY, Input.MEDIAN_RATE: 11.0}.items():
            labels = {"namespace": "ns", "streams_job": "flights", "region": "enrich"}
            labels |= {"stage": str(stage), "topic": "t", INPUT_LABEL: name.value}
            builder.add(labels, value)
    (seen,) = builder.regions.values()
    (found,) = RegionCache(FixedStore({**item, "spec": {**item["spec"], "stages": stages}})).all()
    capacity = Capacity(100.0, 1, 0.5, 0.0, {1: 100.0}, 0.0, 0.0)
    known = Known(0.0, dict.fromkeys(map(str, range(len(stages))), capacity))
    signal = signals_of(found, seen, known)["demand"]
    assert isinstance(signal, Demand)
    loads = [stage.load for stage in signal.stages.values()]
    assert {(load.largest_shard, load.median_shard) for load in loads} == {(0.25, median)}


async def test_resizing_is_a_reason(prometheus: CannedPrometheus) -> None:
    for metric in SIGNALS:
        assert reason(await reading(prometheus, metric, resizing="True")) is Reason.RESIZING


async def test_broken_prometheus_is_a_reason(prometheus: CannedPrometheus) -> None:
    prometheus.broken = True
    assert reason(await reading(prometheus, "demand")) is Reason.SOURCE_UNAVAILABLE


async def test_nothing_before_the_first_refresh(prometheus: CannedPrometheus) -> None:
    provider = provider_of(region())
    assert not provider.ready
    assert reason(provider.by_name("ns", "flights-enrich", "demand")) is Reason.NO_DATA
    await refresh(provider, prometheus)
    assert provider.ready


async def test_ready_without_prometheus_once_it_was_asked(prometheus: CannedPrometheus) -> None:
    """Signals say why they have no value; the API must be there, or no namespace can be deleted."""
    provider = provider_of(region())
    prometheus.broken = True
    await refresh(provider, prometheus)
    assert provider.ready
    assert reason(provider.by_name("ns", "flights-enrich", "demand")) is Reason.SOURCE_UNAVAILABLE


async def test_last_data_serves_until_it_is_too_old(prometheus: CannedPrometheus) -> None:
    provider = provider_of(region())
    await refresh(provider, prometheus)
    prometheus.broken = True
    await refresh(provider, prometheus)
    assert provider.by_name("ns", "flights-enrich", "total_lag").signal().value == 600.0


async def test_capacity_is_remembered_while_idle(prometheus: CannedPrometheus) -> None:
    provider = provider_of(region())
    await refresh(provider, prometheus)
    prometheus.values |= {Input.BUSY_SLOTS: 0.0, Input.PROCESSING_RATE: 0.0, Input.LAG: 0.0}
    await refresh(provider, prometheus)
    found = provider.by_name("ns", "flights-enrich", "demand").signal()
    assert isinstance(found, Demand)
    assert found.stages["0"].channels == pytest.approx(110 * (1 + 2 / 60) / 80)


class ForgetfulSource:
    """Has no samples at all; notes how far back it was asked for what was learned."""

    def __init__(self) -> None:
        self.looks: list[str] = []
        self.broken = True

    async def rows(self, name: str, promql: str, evaluated_at: float) -> Iterator[Row]:
        """Return nothing, or no answer."""
        if name == "learned":
            self.looks.append(promql.rpartition("[")[2].removesuffix("])"))
        if self.broken:
            raise SourceError("it starts")
        return iter(())


async def test_a_far_look_back_is_made_again_until_it_has_succeeded() -> None:
    """An adapter may be ready before its Prometheus."""
    source, provider = ForgetfulSource(), provider_of(region())
    for minute in range(3):
        source.broken = minute == 0
        await provider.refresh(1e9 + 60 * minute, source)
    assert source.looks == ["5m", "5m", "1d", "5m"]


async def test_unknown_names_are_not_found(prometheus: CannedPrometheus) -> None:
    provider = provider_of(region())
    for place in (("ns", "nobody", "demand"), ("ns", "flights-enrich", "beauty")):
        with pytest.raises(NotFoundError, match="not found"):
            provider.by_name(*place)


async def test_a_list_is_whole_or_an_error(prometheus: CannedPrometheus) -> None:
    """A region without a value must not look as if it were not there."""
    provider = provider_of(region(), region(name="other", resizing="True"))
    await refresh(provider, prometheus)
    found = provider.by_selector("ns", selectors.parse("a=1"), "total_lag")
    assert [item.region.name for item in found] == ["flights-enrich", "other"]
    with pytest.raises(UnavailableError, match="Resizing"):
        found[1].signal()
    assert provider.by_selector("ns", selectors.parse("a=2"), "total_lag") == []


async def test_history_has_width_and_signals(prometheus: CannedPrometheus) -> None:
    provider = provider_of(region())
    await refresh(provider, prometheus)
    (sample,) = provider.history.of(("ns", "flights-enrich"), 0.0)
    assert (sample.width, sample.input_rate, sample.signals["total_lag"]) == (2, 110.0, 600.0)
    assert provider.history.of(("ns", "flights-enrich"), sample.time) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (Input.POSITION_AGE, 15.1),
        (Input.POSITION_AGE, None),
        (Input.SAMPLE_TIME, 31.0),
        (Input.SAMPLE_TIME, None),
    ],
)
async def test_history_has_no_rates_of_what_says_nothing_of_now(
    prometheus: CannedPrometheus, name: Input, value: float | None
) -> None:
    """Amid an outage of Kafka positions stand still, as if no records came."""
    nothing = {Input.INPUT_RATE: 0.0, Input.PROCESSING_RATE: 0.0}
    known = {input: found for input, found in STEADY.items() if input is not name}
    prometheus.values = known | nothing | ({} if value is None else {name: value})
    provider = provider_of(region())
    await refresh(provider, prometheus)
    (sample,) = provider.history.of(("ns", "flights-enrich"), 0.0)
    assert (sample.width, sample.input_rate, sample.processing_rate) == (2, None, None)


async def test_history_has_rates_amid_a_width_change(prometheus: CannedPrometheus) -> None:
    """Only signals are withheld then."""
    provider = provider_of(region(resizing="True"))
    await refresh(provider, prometheus)
    (sample,) = provider.history.of(("ns", "flights-enrich"), 0.0)
    assert (sample.input_rate, sample.processing_rate) == (110.0, 100.0)
    assert sample.signals["total_lag"] is None


async def test_a_region_that_sleeps_has_a_demand_from_its_lag(
    prometheus: CannedPrometheus,
) -> None:
    """Nobody tells of batches, state or slots then."""
    awake = region()
    spec = {**awake["spec"], "width": 0, "autoscaling": {"minWidth": 0}}
    status = {"width": 0, "epoch": 3, "observedGeneration": 1}
    positions = (
        *(Input.PARTITIONS, Input.SAMPLE_TIME, Input.POSITION_AGE),
        *(Input.HISTORIES, Input.RESETS),
    )
    nothing = dict.fromkeys((Input.LAG_CHANGE, Input.INPUT_RATE, Input.PROCESSING_RATE), 0.0)
    for lag, width in ((0.0, 0), (2.0, 1)):
        known = {name: STEADY[name] for name in positions}
        prometheus.values = {**known, **nothing, Input.LAG: lag}
        provider = provider_of({**awake, "spec": spec, "status": status})
        await refresh(provider, prometheus)
        assert provider.by_name("ns", "flights-enrich", "demand").signal().value == width
        assert provider.by_name("ns", "flights-enrich", "total_lag").signal().value == lag
