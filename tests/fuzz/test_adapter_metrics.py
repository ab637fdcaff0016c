"""Hostile expositions: whatever one tenant's pods say, another one's signals do not change."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.fuzz.adapter_world import BAD, NUMBERS, TEXTS, Tenants, region
from tests.fuzz.cases import CASES

from streamgraft_metrics_adapter.api import exposition
from streamgraft_metrics_adapter.prometheus.queries import INPUT_LABEL, QUERIES, Input
from streamgraft_metrics_adapter.prometheus.source import Row

LEARNED = (
    *("records", "busy_seconds", "seen_timestamp_seconds", "pause_seconds", "pause_state_bytes"),
    *("needed_timestamp_seconds", "needs_known_since_timestamp_seconds"),
)
PLACE = {"namespace": BAD, "streams_job": "j", "region": "r"}


def measured(query: str, name: Input, stage: str, topic: str, value: float) -> tuple[str, Row]:
    """Return a row of a query of the signals."""
    return query, ({**PLACE, "stage": stage, "topic": topic, INPUT_LABEL: name.value}, value)


def learned(name: str, labels: dict[str, str], value: float) -> tuple[str, Row]:
    """Return a row of what replicas have learned, as if one of them had exported it."""
    return "learned", ({"__name__": f"streamgraft_learned_{name}", **PLACE, **labels}, value)


MEASURED = st.sampled_from([(query, part) for query, parts in QUERIES.items() for part in parts])
ROWS = st.builds(
    lambda asked, *rest: measured(*asked, *rest),
    MEASURED,
    st.sampled_from(["0", "1"]) | TEXTS,
    st.just("t") | TEXTS,
    NUMBERS,
)
SIZES = st.sampled_from(["0", "1", "4", "-1", "0.5", "1e9"]) | TEXTS
LABELS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("stage", "band", "width", "epoch"), SIZES)
)
LEARNED_ROWS = st.builds(learned, st.sampled_from(LEARNED), LABELS, NUMBERS)


@settings(max_examples=CASES)
@given(st.lists(ROWS | LEARNED_ROWS, max_size=40))
def test_signals_of_others_stay(rows: list[tuple[str, Row]]) -> None:
    tenants = Tenants()
    tenants.regions.tell(region(BAD))
    before = tenants.refresh()
    assert tenants.refresh(rows) == tenants.refresh(rows) == before
    text = asyncio.run(exposition.text(tenants.provider)).decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if "namespace" in sample.labels:
                assert sample.labels["namespace"] in ("good", BAD)


@settings(max_examples=CASES)
@given(st.dictionaries(MEASURED, NUMBERS))
def test_any_value_of_any_input_is_a_signal_or_a_reason(
    values: dict[tuple[str, Input], float],
) -> None:
    """All inputs are there, so that what computes with them is reached."""
    tenants = Tenants()
    tenants.regions.tell(region(BAD))
    before = tenants.refresh()
    good = [
        (query, part, 4.0 if part in (Input.PARTITIONS, Input.HISTORIES) else 1.0)
        for query, parts in QUERIES.items()
        for part in parts
    ]
    rows = [
        measured(query, part, "0", "t", values.get((query, part), usual))
        for query, part, usual in good
        if part is not Input.PARTITIONS
    ]
    rows.append(measured("lag", Input.PARTITIONS, "0", "t", 4.0))
    assert tenants.refresh(rows) == before
    for reading in tenants.provider.read_all(tenants.provider.region(BAD, "j-r")):
        assert reading.result is not None
