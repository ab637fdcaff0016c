"""One object's bad data is that object's error: the others' signals stay as they are."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import ValidationError

from streamgraft_autoscaler import CapacitySample, NotReadyError, total_lag
from streamgraft_autoscaler.pause import MeasuredPause
from streamgraft_common.adl import Autoscaling
from streamgraft_common.kube import KubeClient, Store
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.resources import PARALLEL_REGION, ParallelRegionSpec
from streamgraft_metrics_adapter.api import exposition
from streamgraft_metrics_adapter.learning.learned_metrics import parse, query
from streamgraft_metrics_adapter.prometheus.observations import MOST_ROWS, ObservationBuilder
from streamgraft_metrics_adapter.prometheus.queries import INPUT_LABEL, Input, past_rates
from streamgraft_metrics_adapter.prometheus.source import Row, Source
from streamgraft_metrics_adapter.prometheus.text import alternatives, quoted
from streamgraft_metrics_adapter.regions import RegionCache
from streamgraft_metrics_adapter.settings import OWN_TARGETS
from streamgraft_metrics_adapter.signals.evaluation import SIGNALS
from streamgraft_metrics_adapter.signals.provider import Provider
from streamgraft_metrics_adapter.status import NotFoundError, UnavailableError

NOW = 1.8e9
INPUTS: dict[Input, float] = {
    **dict.fromkeys((Input.LAG, Input.RESETS, Input.STATE_BYTES, Input.LAG_CHANGE), 0.0),
    Input.PARTITIONS: 4,
    Input.HISTORIES: 4,
    Input.ELEMENTS: 1,
    Input.IDLE_SHARE: 0.5,
    Input.INPUT_RATE: 100.0,
    Input.PROCESSING_RATE: 100.0,
    Input.LARGEST_RATE: 25.0,
    Input.MEDIAN_RATE: 25.0,
    Input.BUSY_SLOTS: 0.5,
    Input.WARM_SLOTS: 0.5,
    Input.SLOTS: 1.0,
    Input.BATCH_RATE: 1.0,
    Input.POSITION_AGE: 1.0,
}


def region(job: str, **spec: Any) -> dict[str, Any]:
    """Return a region of one channel."""
    plain = {"job": job, "region": "r", "width": 1, "maxWidth": 4, "key": ["k"]}
    body = PARALLEL_REGION.manifest(f"{job}-r", "ns", plain | spec)
    return {**body, "status": {"width": 1}}


class GivenRegions(Store):
    """A cache that was listed once."""

    def __init__(self, *items: dict[str, Any]) -> None:
        super().__init__(KubeClient(KubeConfig(server="http://127.0.0.1:1")), "/none")
        self._items = {("ns", item["metadata"]["name"]): item for item in items}
        self.synced.set()


class Answers:
    """A source in which two jobs do the same, and somebody has exported something as learned."""

    def __init__(self, learned: list[Row], odd: dict[Input, float]) -> None:
        self._learned, self._odd = learned, odd

    async def rows(self, name: str, promql: str, evaluated_at: float) -> Iterator[Row]:
        """Answer."""
        if name == "learned":
            return iter(self._learned)
        inputs = {Input.SAMPLE_TIME: time.time(), **INPUTS}
        return iter([*rows("good", inputs), *rows("bad", inputs | self._odd)])


def rows(job: str, inputs: dict[Input, float]) -> list[Row]:
    """Return rows of a job's region."""
    labels = {"namespace": "ns", "streams_job": job, "region": "r", "stage": "0", "topic": "t"}
    return [({**labels, INPUT_LABEL: name.value}, value) for name, value in inputs.items()]


def learned(name: str, value: float, job: str = "bad", **labels: str) -> Row:
    """Return a row of a value that was learned of a region."""
    place = {"namespace": "ns", "streams_job": job, "region": "r"}
    return {"__name__": f"streamgraft_learned_{name}", **place, **labels}, value


async def provider(
    *regions: dict[str, Any],
    learned: list[Row] | None = None,
    odd: dict[Input, float] | None = None,
) -> Provider:
    """Return a provider of a good region and others, after two refreshes."""
    made = Provider(
        RegionCache(GivenRegions(region("good"), *regions)),
        window_seconds=60.0,
        max_age_seconds=30.0,
        refresh_seconds=2.0,
        learned_from=OWN_TARGETS,
    )
    source: Source = Answers(learned or [], odd or {})
    for _ in range(2):
        await made.refresh(time.time(), source)
    return made


def served(found: Provider, job: str) -> dict[str, float]:
    """Return the signals of a job's region that have a value."""
    readings = found.read_all(found.region("ns", f"{job}-r"))
    return {
        reading.metric: reading.signal().value
        for reading in readings
        if not hasattr(reading.result, "reason")
    }


ODD_REGIONS = {
    "a cost that overflows": {"maxCostPerHour": 1e308, "channelCostPerHour": 1e-308},
    "a folder as time zone": {
        "periods": [{"start": "00:00", "end": "00:00", "timeZone": "America"}]
    },
    "no catch-up time": {"catchUpSeconds": 5e-324},
    "no utilization": {"targetUtilization": 5e-324},
    "an overshoot without bounds": {"overshoot": 1e308},
}


@pytest.mark.parametrize("autoscaling", ODD_REGIONS.values(), ids=ODD_REGIONS.keys())
async def test_odd_settings_are_their_regions_error(autoscaling: dict[str, Any]) -> None:
    found = await provider(region("bad", autoscaling=autoscaling))
    assert served(found, "good").keys() == set(SIGNALS)


async def test_a_region_that_cannot_be_read_says_so() -> None:
    odd = region("bad", autoscaling=ODD_REGIONS["a folder as time zone"])
    found = await provider(odd)
    with pytest.raises(UnavailableError, match="America"):
        found.by_name("ns", "bad-r", "demand")
    with pytest.raises(NotFoundError):
        found.by_name("ns", "nobody-r", "demand")


async def test_a_status_that_makes_no_sense_is_its_regions_error() -> None:
    change = {"fromWidth": 1, "toWidth": 2, "epoch": 1, "requestedAt": "x", "finishedAt": "y"}
    found = await provider({**region("bad"), "status": {"width": 1, "changes": [change]}})
    assert served(found, "bad") == {}
    assert served(found, "good").keys() == set(SIGNALS)
    with pytest.raises(UnavailableError, match="Invalid"):
        found.by_name("ns", "bad-r", "demand").signal()


@pytest.mark.parametrize("value", [0.0, -1.0, 5e-324, 1e308, float("inf"), float("nan")])
@pytest.mark.parametrize("name", sorted(set(Input) - {Input.SAMPLE_TIME}))
async def test_odd_inputs_are_their_regions_error(name: Input, value: float) -> None:
    if name in (Input.LAG, Input.PARTITIONS) and value != value:
        value = 2.5
    found = await provider(region("bad"), odd={name: value} if name != Input.PARTITIONS else {})
    assert served(found, "good").keys() == set(SIGNALS)
    for signal in served(found, "bad").values():
        assert abs(signal) < 1e16


SAMPLE = {"stage": "0", "band": "0.5", "width": "1"}
NEVER_LEARNED = {
    "no records": [("records", 0.0), ("busy_seconds", 10.0), ("seen_timestamp_seconds", NOW)],
    "no time": [("records", 10.0), ("busy_seconds", 0.0), ("seen_timestamp_seconds", NOW)],
    "too fast": [("records", 1e308), ("busy_seconds", 1e-308), ("seen_timestamp_seconds", NOW)],
    "to come": [("records", 1.0), ("busy_seconds", 1.0), ("seen_timestamp_seconds", NOW + 999)],
    "negative": [("records", -1.0), ("busy_seconds", 1.0), ("seen_timestamp_seconds", NOW)],
}


@pytest.mark.parametrize("values", NEVER_LEARNED.values(), ids=NEVER_LEARNED.keys())
async def test_what_no_window_shows_is_not_learned(values: list[tuple[str, float]]) -> None:
    rows = [learned(name, value, **SAMPLE) for name, value in values]
    assert not await parse(rows, NOW)
    found = await provider(region("bad"), learned=rows)
    assert served(found, "good").keys() == served(found, "bad").keys() == set(SIGNALS)


@pytest.mark.parametrize(
    "row",
    [
        learned("needed_timestamp_seconds", NOW, width="1000000000"),
        learned("needed_timestamp_seconds", NOW, width="-1"),
        learned("needed_timestamp_seconds", NOW + 3600, width="1"),
        learned("needs_known_since_timestamp_seconds", NOW + 3600),
        learned("needs_known_since_timestamp_seconds", -1e300),
    ],
)
async def test_needs_of_no_region_are_not_learned(row: Row) -> None:
    assert not (await parse([row], NOW)).since
    assert not (await parse([row], NOW)).needed


def test_one_region_that_says_too_much_costs_the_others_nothing() -> None:
    """A pod says itself what topics it reads, and in which stages."""
    builder = ObservationBuilder()
    for number in range(3 * MOST_ROWS):
        labels = {"region": "r", INPUT_LABEL: Input.LAG, "topic": f"t{number}"}
        builder.add({**labels, "namespace": "ns", "streams_job": "bad"}, 1.0)
    builder.add({**labels, "namespace": "ns", "streams_job": "good"}, 1.0)
    (bad, good) = builder.regions.values()
    assert len(bad.stage("0").lag) == MOST_ROWS
    assert len(good.stage("0").lag) == 1
    with pytest.raises(NotReadyError, match="and 9995 more topics") as error:
        total_lag(bad.stage("0").topics(), 2)
    assert len(str(error.value)) < 1000


def test_values_say_what_can_be() -> None:
    for odd in ((0.5, 1, 0.0, 1.0, NOW), (0.4, 1, 1.0, 1.0, NOW), (0.5, 0, 1.0, 1.0, NOW)):
        with pytest.raises(ValueError, match="no window"):
            CapacitySample(*odd)
    for pause in ((-1.0, 0.0), (1e9, 0.0), (1.0, -1.0), (1.0, float("nan"))):
        with pytest.raises(ValueError, match="no width change"):
            MeasuredPause(*pause)


def test_learned_values_come_from_the_adapters_own_targets() -> None:
    assert OWN_TARGETS in query("5m", OWN_TARGETS)


def test_an_affordable_width_is_never_more_than_there_are_shards() -> None:
    settings = Autoscaling(max_cost_per_hour=1e308, channel_cost_per_hour=1e-308)
    assert settings.largest_width(12) == 12
    assert Autoscaling(max_cost_per_hour=1, channel_cost_per_hour=1e308).largest_width(12) == 1


@pytest.mark.parametrize("job", ['a"b', "a\nb", "a\\", "a b", "", "A", "x" * 64])
def test_names_that_no_job_has_are_refused(job: str) -> None:
    with pytest.raises(ValidationError):
        ParallelRegionSpec(job=job, region="r", width=1, max_width=4, key=["k"])


def test_names_are_escaped_where_they_are_written() -> None:
    """Old objects may have names that are refused now; each reader would take them for syntax."""
    assert quoted('a"\\\n') == r'"a\"\\\n"'
    assert alternatives(["a-b.c", "x"]) == r'"a\\-b[.]c|x"'
    assert past_rates({'a"} or vector(1)'}).count('"') % 2 == 0


async def test_no_name_adds_a_sample_to_the_exposition() -> None:
    """The regions are made past the API server, which refuses such names today."""
    found = await provider()
    good = found.region("ns", "good-r")
    odd = type(good)(
        namespace="ns",
        name='x",a="b"} 1\nstreamgraft_region_signal{namespace="other"',
        labels={},
        spec=good.spec.model_copy(update={"job": 'j"\n', "region": "\\"}),
        status=good.status,
    )
    found._regions._regions["ns"]["odd"] = odd
    text = (await exposition.text(found)).decode()
    samples = [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("streamgraft_region_signal")
    ]
    assert {sample.labels["namespace"] for sample in samples} == {"ns"}
    assert odd.name in {sample.labels["name"] for sample in samples}
