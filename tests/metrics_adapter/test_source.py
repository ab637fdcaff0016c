"""Answers of Prometheus, good and bad, and how long reading them keeps others waiting."""

import asyncio
import json
import math
import time
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from streamgraft_metrics_adapter.prometheus.decoding import elements
from streamgraft_metrics_adapter.prometheus.server import PrometheusServer
from streamgraft_metrics_adapter.prometheus.source import (
    PrometheusSource,
    Row,
    SourceError,
    answers,
    rows_of,
    series_of,
)
from streamgraft_metrics_adapter.time_slices import SLICE_SECONDS, in_slices


def test_rows_have_labels_and_a_number() -> None:
    odd = {"a": 'quotes " and ]}', "b": "ü\\"}
    elements = [
        {"metric": {}, "value": [1.5, "1"]},
        {"metric": odd, "value": [2, "NaN"]},
        {"metric": {"c": ""}, "value": [2, "-Inf"]},
    ]
    (_, one), (labels, nan), (_, infinite) = rows_of(elements)
    assert (one, labels, infinite) == (1, odd, -math.inf)
    assert math.isnan(nan)
    assert list(rows_of([])) == []


@pytest.mark.parametrize(
    "elements",
    [[1.5, "2"], [{"metric": {}}], [{"metric": {}, "value": [1, "x"]}]],
)
def test_what_is_no_vector_is_an_error(elements: list[Any]) -> None:
    with pytest.raises(SourceError):
        list(rows_of(elements))


def test_series_have_labels_and_numbers_with_their_times() -> None:
    elements = [{"metric": {"a": "b"}, "values": [[1, "2.5"], [901.5, "NaN"]]}]
    ((labels, ((first, one), (second, nan))),) = series_of(elements)
    assert (labels, first, one, second) == ({"a": "b"}, 1, 2.5, 901.5)
    assert math.isnan(nan)


@pytest.mark.parametrize(
    "elements",
    [[1.5], [{"metric": {}}], [{"metric": {}, "values": [[1, "x"]]}], [{"values": []}]],
)
def test_what_is_no_matrix_is_an_error(elements: list[Any]) -> None:
    with pytest.raises(SourceError):
        list(series_of(elements))


VECTOR = [
    {"metric": {"a": '"result":[ ]}', "b": "ü"}, "value": [1.5, "1"]},
    {"metric": {}, "value": [2, "NaN"]},
]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("found", [VECTOR, VECTOR[:1], []])
def test_answers_are_decoded_row_by_row(found: list[Any], indent: int | None) -> None:
    data = {"resultType": "vector", "result": found, "more": [1]}
    text = json.dumps({"status": "success", "data": data, "warnings": ["w"]}, indent=indent)
    assert list(elements(text)) == found


@pytest.mark.parametrize(
    "text",
    ["", "null", '{"data": {"result": 1}}', '{"result": [', '{"result": [{"metric": {}}, {"va'],
)
def test_an_answer_that_broke_off_is_an_error(text: str) -> None:
    with pytest.raises(SourceError):
        list(rows_of(elements(text)))


async def test_an_absent_server_is_an_error_that_names_the_query() -> None:
    source = PrometheusSource(PrometheusServer("http://127.0.0.1:1"))
    with pytest.raises(SourceError, match=r"query of lag: .*127\.0\.0\.1"):
        await source.rows("lag", "up", time.time())
    with pytest.raises(SourceError, match=r"query of days: .*127\.0\.0\.1"):
        await source.series("days", "up", (0.0, 900.0), 900.0)


class Noting:
    """Answers each query with a row that has its name, and notes what happens."""

    def __init__(self) -> None:
        self.events: list[str] = []

    async def rows(self, name: str, promql: str, evaluated_at: float) -> Iterator[Row]:
        """Take one round of the event loop."""
        self.events.append(f"{name} asked")
        await asyncio.sleep(0)
        if promql == "broken":
            raise SourceError(name)
        return iter([({"name": name}, 1.0)])


async def test_while_an_answer_is_read_the_next_query_is_evaluated() -> None:
    """One at a time."""
    source = Noting()
    async with aclosing(answers(source, {"a": "", "b": "", "c": ""}, 0.0)) as found:
        async for rows in found:
            source.events += [f"{labels['name']} there" for labels, _ in rows]
            await asyncio.sleep(0)
            source.events.append("read")
    assert source.events == [
        *("a asked", "a there", "b asked", "read"),
        *("b there", "c asked", "read"),
        *("c there", "read"),
    ]


async def test_a_query_without_an_answer_ends_them() -> None:
    source = Noting()
    async with aclosing(answers(source, {"a": "", "b": "broken", "c": ""}, 0.0)) as found:
        assert next(await anext(found)) == ({"name": "a"}, 1.0)
        with pytest.raises(SourceError, match="b"):
            await anext(found)
    assert source.events == ["a asked", "b asked"]


async def test_long_work_lets_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits has its turn whenever a turn of the work is over, and not after each item."""
    turns, worked, ended = 0, 0.0, False

    def busy() -> Iterator[int]:
        nonlocal worked
        for item in range(100):
            worked += SLICE_SECONDS * 0.4
            yield item

    async def other() -> None:
        nonlocal turns
        while not ended:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr("time.perf_counter", lambda: worked)
    waiting = asyncio.create_task(other())
    async for _ in in_slices(busy()):
        pass
    ended = True
    await waiting
    assert turns == 33
