"""Two jobs that share a stream, on the real control plane."""

from typing import Any

import pytest
from tests.operator.integration.world import World, application, bundle, condition

from streamgraft_common.resources import EXPORT, IMPORT, JOB, PROCESSING_ELEMENT

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("operator", "player", "source_topic"),
]

SUBSCRIPTION = 'kind == "event" && level >= 2'


def _exporting(topics: str) -> dict[str, Any]:
    adl = application(topics)
    stream = adl["streams"][0]["name"]
    exported = {"properties": {"kind": "event", "level": 3, "tags": ["a"]}}
    adl["operators"].append(
        {"name": "out", "kind": "export", "inputs": [stream], "exported": exported}
    )
    return adl


def _importing(topics: str) -> dict[str, Any]:
    adl = application(topics)
    stream = adl["streams"][0]
    shared = {**stream, "name": "shared", "producer": "shared"}
    adl["streams"].append(shared)
    imported = {"subscription": SUBSCRIPTION}
    sink = {"topic": f"{topics}-shared"}
    adl["operators"] += [
        {"name": "shared", "kind": "import", "outputs": ["shared"], "imported": imported},
        {"name": "keep", "kind": "kafka-sink", "inputs": ["shared"], "kafka": sink},
    ]
    return adl


def _reads(item: Any, count: int) -> bool:
    return bool(item) and len((item.get("status") or {}).get("exports", [])) == count


async def _importer(world: World) -> dict[str, Any]:
    found = [
        item
        for item in (await world.client.list(PROCESSING_ELEMENT.path(world.namespace), {}))["items"]
        if item["spec"].get("importOperators")
    ]
    assert len(found) == 1
    pe: dict[str, Any] = found[0]
    return pe


async def test_jobs_share_a_stream(world: World) -> None:
    """Connections are made and unmade by edits and by jobs that come and go; no PE is launched for
    it, and what users edit stays."""
    await world.upload(bundle(_importing(world.namespace)))
    await world.submit("reader")
    await world.job_in("Healthy", "reader")
    missing = await world.eventually(
        IMPORT, "reader-shared", lambda item: item and condition(item, "Ready")
    )
    assert condition(missing, "Ready")["reason"] == "NoExport"
    before = await _importer(world)
    await world.upload(bundle(_exporting(world.namespace)), "other")
    await world.submit("writer", bundle={"configMap": {"name": "other", "key": "bundle.zip"}})
    await world.job_in("Healthy", "writer")
    await world.eventually(IMPORT, "reader-shared", lambda item: _reads(item, 1))
    export = await world.eventually(
        EXPORT, "writer-out", lambda item: item and (item.get("status") or {}).get("imports")
    )
    assert export["status"]["imports"] == [f"{world.namespace}/reader-shared"]
    pe = await _importer(world)
    assert pe["spec"]["imports"] == [
        {"operator": "shared", "topics": [export["spec"]["topic"]], "filter": ""}
    ]
    path = EXPORT.path(world.namespace, "writer-out")
    await world.client.patch(path, {"spec": {"properties": {"level": 1}}})
    await world.eventually(IMPORT, "reader-shared", lambda item: _reads(item, 0))
    wanted = {"spec": {"subscription": "level == 1", "filter": "nothing = 1"}}
    await world.client.patch(IMPORT.path(world.namespace, "reader-shared"), wanted)
    wrong = await world.eventually(
        IMPORT,
        "reader-shared",
        lambda item: item and condition(item, "Ready")["reason"] == "Invalid",
    )
    assert "column 9: '=' is not expected" in condition(wrong, "Ready")["message"]
    await world.client.patch(
        IMPORT.path(world.namespace, "reader-shared"), {"spec": {"filter": None}}
    )
    await world.eventually(IMPORT, "reader-shared", lambda item: _reads(item, 1))
    after = await _importer(world)
    assert after["status"]["launchCount"] == before["status"]["launchCount"]
    await world.client.delete(JOB.path(world.namespace, "writer"))
    await world.eventually(IMPORT, "reader-shared", lambda item: _reads(item, 0))
    await world.eventually(EXPORT, "writer-out", lambda item: item is None)
    await world.eventually(JOB, "writer", lambda item: item is None)
