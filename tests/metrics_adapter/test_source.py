"""Answers of Prometheus, good and bad, and how long reading them keeps others waiting."""

import asyncio
import math
import time
from collections.abc import Iterator
from typing import Any

import pytest

from streamgraft_metrics_adapter.source import PrometheusSource, SourceError, rows_of
from streamgraft_metrics_adapter.turns import in_turns


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


async def test_an_absent_server_is_an_error_that_names_the_query() -> None:
    source = PrometheusSource("http://127.0.0.1:1")
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
