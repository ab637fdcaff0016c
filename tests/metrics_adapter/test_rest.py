"""The REST routes in one process: pages, the past, live views."""

import asyncio
import json
import time
from typing import Any

import pytest
from starlette.types import Message

from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_metrics_adapter.api.routes.replays import MOST_WAITING
from streamgraft_metrics_adapter.prometheus.queries import INPUT_LABEL, Input
from streamgraft_metrics_adapter.prometheus.source import Row

SPACE = "/api/v1/namespaces/ns"
LABELS = {"namespace": "ns", "streams_job": "flights", "region": "enrich", "stage": "0"}


def region(name: str, *changes: dict[str, Any]) -> dict[str, Any]:
    """Return a ParallelRegion of width 2, at most 4."""
    spec = {"job": "flights", "region": "enrich", "width": 2, "maxWidth": 4, "key": ["k"]}
    body = PARALLEL_REGION.manifest(name, "ns", spec, resourceVersion="1")
    return {**body, "status": {"width": 2, "changes": list(changes)}}


def rows(lag: float) -> list[Row]:
    """Return the rows that give total_lag a value now."""
    values = {Input.LAG: lag, Input.PARTITIONS: 4, Input.SAMPLE_TIME: time.time()}
    values[Input.POSITION_AGE] = 0.0
    return [
        ({**LABELS, "topic": "t", INPUT_LABEL: name.value}, value) for name, value in values.items()
    ]


async def test_regions_come_in_pages(called: Any) -> None:
    for name in ("c", "a", "b"):
        called.regions.observe(region(name))
    await called.measure(time.time(), *rows(7))
    _, first = await called.get(f"{SPACE}/regions", limit="2")
    assert [item["name"] for item in first["items"]] == ["a", "b"]
    signals = first["items"][0]["signals"]
    assert signals["total_lag"]["value"] == 7
    assert signals["demand"]["reason"] == "NoData"
    assert "value" not in signals["demand"]
    _, second = await called.get(f"{SPACE}/regions", limit="2", **{"continue": first["continue"]})
    assert [item["name"] for item in second["items"]] == ["c"]
    assert "continue" not in second


async def test_the_api_server_passes_on_what_rest_tells_of_a_region(called: Any) -> None:
    """So that who sees its signals needs no way to the adapter's own port; it is no metric."""
    called.regions.observe(region("a"))
    await called.measure(time.time(), *rows(7))
    metrics = "/apis/custom.metrics.k8s.io/v1beta2"
    place = f"{metrics}/namespaces/ns/parallelregions.streamgraft.io"
    code, told = await called.get(f"{place}/a/explanation")
    assert code == 200
    assert told == (await called.get(f"{SPACE}/regions/a"))[1]
    assert told["signals"]["total_lag"]["value"] == 7
    code, status = await called.get(f"{place}/nobody/explanation")
    assert (code, status["message"]) == (
        404,
        'parallelregions.streamgraft.io "ns/nobody" not found',
    )
    _, listing = await called.get(metrics)
    assert not [item for item in listing["resources"] if "explanation" in item["name"]]


async def test_history_comes_in_pages(called: Any) -> None:
    called.regions.observe(region("a"))
    start = time.time() - 60
    for index in range(4):
        await called.measure(start + 15 * index, *rows(index))
    path = f"{SPACE}/regions/a/history"
    _, first = await called.get(path, limit="3")
    assert [item["signals"]["total_lag"] for item in first["items"]] == [0, 1, 2]
    _, rest = await called.get(path, **{"continue": first["continue"]})
    assert [item["signals"]["total_lag"] for item in rest["items"]] == [3]
    _, recent = await called.get(path, since=str(start + 20))
    assert len(recent["items"]) == 2
    assert (await called.get(path, **{"continue": "yesterday"}))[0] == 400


LOADED = {
    Input.LAG: 100.0,
    Input.PARTITIONS: 24,
    Input.POSITION_AGE: 0.0,
    Input.LAG_CHANGE: 0.0,
    Input.HISTORIES: 24,
    Input.RESETS: 0,
    Input.PROCESSING_RATE: 100.0,
    Input.BUSY_SLOTS: 1.0,
    Input.WARM_SLOTS: 1.0,
    Input.BATCH_RATE: 1.0,
    Input.STATE_BYTES: 0.0,
    Input.SLOTS: 1.0,
}
"""A channel that is busy all the time does 100 records/s."""


async def loaded(called: Any, seconds: int) -> None:
    """Let a region of width 2, at most 24, get 300 records/s for a time until now."""
    body = region("a")
    body["spec"]["maxWidth"], body["metadata"]["resourceVersion"] = 24, "2"
    called.regions.observe(body)
    labels = {**LABELS, "topic": "t"}
    end = time.time()
    values = {**LOADED, Input.SAMPLE_TIME: end, Input.INPUT_RATE: 300.0, Input.LARGEST_RATE: 12.5}
    values[Input.MEDIAN_RATE] = 12.5
    rows = [({**labels, INPUT_LABEL: name.value}, value) for name, value in values.items()]
    for at in range(-seconds, 1, 10):
        await called.measure(end + at, *rows)


async def test_a_replay_is_of_the_regions_own_hour(called: Any) -> None:
    """Three channels' worth of work: more of them are kept ready the less busy they are to be."""
    await loaded(called, 900)
    path = f"{SPACE}/regions/a/replay"
    answers = [await called.get(path, targetUtilization=share) for share in ("1.0", "0.4")]
    assert [code for code, _ in answers] == [200, 200]
    high, low = (found for _, found in answers)
    assert (high["steps"][-1]["wantedWidth"], low["steps"][-1]["wantedWidth"]) == (4, 12)
    assert min(found["replayed"]["changes"] for found in (high, low)) >= 1
    assert high["happened"] == low["happened"]
    assert high["happened"]["changes"] == 0
    assert high["happened"]["largestBacklog"] == 100
    assert high["happened"]["channelHours"] == pytest.approx(2 * high["seconds"] / 3600)
    assert high["seconds"] == pytest.approx(900, abs=30)
    assert high["longestWaitSeconds"] > 1
    assert high["replayed"]["channelHours"] < low["replayed"]["channelHours"]


async def test_no_replay_without_enough_that_is_known(called: Any) -> None:
    path = f"{SPACE}/regions/a/replay"
    assert (await called.get(path, targetUtilization="0.6"))[0] == 404
    called.regions.observe(region("a"))
    await called.measure(time.time(), *rows(7))
    code, status = await called.get(path, targetUtilization="0.6")
    assert (code, "demand of ns/a has no value: NoData" in status["message"]) == (503, True)
    await loaded(called, 20)
    code, status = await called.get(path, targetUtilization="0.6")
    assert code == 503
    assert "the last hour are known; a replay needs 60 s" in status["message"]


async def test_replays_take_turns_and_too_many_are_refused(called: Any) -> None:
    await loaded(called, 900)
    path = f"{SPACE}/regions/a/replay"
    asked = [called.get(path, targetUtilization="0.6") for _ in range(MOST_WAITING + 3)]
    codes = [code for code, _ in await asyncio.gather(*asked)]
    assert sorted(codes) == [200] * MOST_WAITING + [429] * 3
    assert (await called.get(path, targetUtilization="0.6"))[0] == 200


async def test_decisions_tell_the_signals_before_them(called: Any) -> None:
    times = ["2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"]
    changes = [
        {"fromWidth": 1 + i, "toWidth": 2 + i, "epoch": i, "requestedAt": at, "movedShards": []}
        for i, at in enumerate(times)
    ]
    called.regions.observe(region("a", *changes))
    await called.measure(1767226195.0, *rows(9))  # five seconds before the second one
    path = f"{SPACE}/regions/a/decisions"
    _, first = await called.get(path, limit="1")
    (newest,) = first["items"]
    assert (newest["fromWidth"], newest["toWidth"]) == (2, 3)
    assert newest["signals"]["total_lag"] == 9
    _, rest = await called.get(path, **{"continue": first["continue"]})
    assert [item["signals"] for item in rest["items"]] == [None]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"{SPACE}/regions?limit=0", 422),
        (f"{SPACE}/regions?labelSelector=a b", 400),
        (f"{SPACE}/regions/nobody", 404),
        (f"{SPACE}/regions/nobody/history", 404),
        (f"{SPACE}/regions/nobody/stream", 404),
        (f"{SPACE}/regions/nobody/replay?targetUtilization=0.5", 404),
        (f"{SPACE}/regions/nobody/replay?targetUtilization=1.1", 422),
        (f"{SPACE}/regions/nobody/replay?targetUtilization=0", 422),
        (f"{SPACE}/regions/nobody/replay?targetUtilization=nan", 422),
        (f"{SPACE}/regions/nobody/replay", 422),
        (f"{SPACE}/regions/..", 404),
        (f"{SPACE}/regions/Nobody/decisions", 404),
    ],
)
async def test_refusals_are_status_objects(called: Any, path: str, code: int) -> None:
    place, _, query = path.partition("?")
    parameters = dict([query.split("=")]) if query else {}
    found, status = await called.get(place, **parameters)
    assert (found, status["kind"], status["code"]) == (code, "Status", code)


@pytest.mark.parametrize("place", [SPACE, f"{SPACE}/regions/a"])
async def test_streams_send_a_page_after_each_refresh(called: Any, place: str) -> None:
    called.regions.observe(region("a"))
    await called.measure(time.time() - 1, *rows(1))
    events: asyncio.Queue[Any] = asyncio.Queue()
    ended = asyncio.Event()

    async def receive() -> Message:
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        for line in message.get("body", b"").decode().splitlines():
            if line.startswith("data: "):
                await events.put(json.loads(line.removeprefix("data: ")))

    scope = {
        "type": "http",
        "method": "GET",
        "path": f"{place}/stream",
        "query_string": b"",
        "headers": [],
    }
    stream = asyncio.create_task(called.app(scope, receive, send))
    async with asyncio.timeout(30):
        first = await events.get()
        await called.measure(time.time(), *rows(2))
        second = await events.get()
        ended.set()
        await stream
    assert (await called.get(f"{SPACE}/regions"))[1] == second
    shown = [event["items"][0]["signals"]["total_lag"]["value"] for event in (first, second)]
    assert shown == [1, 2]


async def test_width_is_not_written_without_a_token(called: Any) -> None:
    called.regions.observe(region("a"))
    path = f"{SPACE}/regions/a/scale"
    assert (await called.get(path))[1] == {"width": 2, "serving": 2}
    code, status = await called.get(path, "PUT", content=b'{"width": 3}')
    assert (code, status["reason"]) == (403, "Forbidden")
    assert "bearer token" in status["message"]
