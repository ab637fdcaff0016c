"""Answers of Prometheus, good and bad, and how long reading them keeps others waiting."""

import asyncio
import json
import math
import time
from collections.abc import Iterator
from typing import Any

import pytest

from streamgraft_metrics_adapter.source import PrometheusSource, SourceError, rows_of
from streamgraft_metrics_adapter.turns import in_turns


def answer(*rows: Any, indent: int | None) -> str:
    """Return a vector; Prometheus writes it without any space."""
    data = {"resultType": "vector", "result": rows}
    separators = (",", ":") if indent is None else None
    return json.dumps({"status": "success", "data": data}, indent=indent, separators=separators)


@pytest.mark.parametrize("indent", [None, 2])
def test_rows_have_labels_and_a_number(indent: int | None) -> None:
    odd = {"a": 'quotes " and ]}, "result":[', "b": "ü\\"}
    rows = [
        {"metric": {}, "value": [1.5, "1"]},
        {"metric": odd, "value": [2, "NaN"]},
        {"metric": {"c": ""}, "value": [2, "-Inf"]},
    ]
    (_, one), (labels, nan), (_, infinite) = rows_of(answer(*rows, indent=indent))
    assert (one, labels, infinite) == (1, odd, -math.inf)
    assert math.isnan(nan)
    assert list(rows_of(answer(indent=indent))) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>",
        '{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}',
        '{"status":"success","data":{"resultType":"vector","result":[',
        '{"status":"success","data":{"resultType":"vector","result":[{"metric":{}}]}}',
        '{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"x"]}',
    ],
)
def test_what_is_no_vector_is_an_error(text: str) -> None:
    with pytest.raises(SourceError):
        list(rows_of(text))


async def test_an_absent_server_is_an_error_that_names_the_query() -> None:
    async with PrometheusSource("http://127.0.0.1:1") as source:
        with pytest.raises(SourceError, match=r"query of lag: .*127\.0\.0\.1"):
            await source.rows("lag", "up", time.time())


async def test_long_work_lets_others_run() -> None:
    """What waits for its turn runs many times before the work has ended."""
    turns, ended = 0, False

    def busy() -> Iterator[int]:
        until = time.perf_counter() + 0.1
        while time.perf_counter() < until:
            yield 0

    async def other() -> None:
        nonlocal turns
        while not ended:
            turns += 1
            await asyncio.sleep(0)

    waiting = asyncio.create_task(other())
    async for _ in in_turns(busy()):
        pass
    ended = True
    await waiting
    assert turns > 5
