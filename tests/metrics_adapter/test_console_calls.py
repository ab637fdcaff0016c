"""The graph that the console remembers of a job, while an edit changes it; and what it shows of
logs."""

import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from tests.metrics_adapter.test_console_graph import element, stage

from streamgraft_common import names
from streamgraft_common.kinds import CONFIG_MAP
from streamgraft_common.kube import KubeClient, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.resources import JOB, PARALLEL_REGION, PROCESSING_ELEMENT
from streamgraft_metrics_adapter.api.console.calls import Calls

NOWHERE = KubeConfig(server="http://127.0.0.1:1")
CREATED = "2026-01-01T00:00:00Z"


class GivenObjects(KubeClient):
    """An API server with a job `j`; what it is asked for by name is counted."""

    def __init__(self) -> None:
        super().__init__(NOWHERE)
        metadata = {"namespace": "n", "name": "j", "uid": "u", "creationTimestamp": CREATED}
        job = {**JOB.manifest("j", "n", {"bundle": {"file": "/x"}}), "metadata": metadata}
        self.objects: dict[str, Object] = {JOB.path("n", "j"): job}
        self.elements: dict[int, Object] = {}
        self.read: list[str] = []

    async def get(self, path: str, **query: str) -> Object:
        """Return an object or a list."""
        if path == PROCESSING_ELEMENT.path("n"):
            return {"items": [*self.elements.values()]}
        if path == PARALLEL_REGION.path("n"):
            return {"items": []}
        if path not in self.objects:
            raise NotFound(404, "NotFound", path)
        self.read += [path] if path.startswith(CONFIG_MAP.path("n")) else []
        return self.objects[path]

    def write_config_map(self, number: int, metadata: PeMetadata, content: str) -> None:
        """Write the ConfigMap of a PE."""
        self.objects[CONFIG_MAP.path("n", f"j-{number}")] = {
            "metadata": {"annotations": {names.ANNOTATION_CONTENT: content}},
            "data": {names.PE_METADATA_KEY: metadata.model_dump_json(by_alias=True)},
        }

    def write_pe(self, number: int, name: str, content: str) -> None:
        """Write a PE."""
        item = element(number, name)
        item["metadata"]["annotations"] = {names.ANNOTATION_CONTENT: content}
        self.elements[number] = item

    def write(self, number: int, metadata: PeMetadata, content: str) -> None:
        """Write both."""
        self.write_config_map(number, metadata, content)
        self.write_pe(number, metadata.stage_name, content)


async def seen(calls: Calls, api: GivenObjects) -> list[tuple[Any, Any]]:
    """Return the streams of the job as the console draws them."""
    found = await calls.job(api, "n", "j")
    return [(item["from"], item["to"]) for item in found["streams"]]


async def test_a_graph_is_read_once() -> None:
    calls, api = Calls(NOWHERE), GivenObjects()
    api.write(0, stage("a", {}, {"x": False}), "1")
    api.write(1, stage("b", {"x": False}, {}), "1")
    assert await seen(calls, api) == await seen(calls, api) == [("a", "b")]
    assert api.read == [CONFIG_MAP.path("n", "j-0"), CONFIG_MAP.path("n", "j-1")]


async def test_a_graph_that_is_read_amid_an_edit_is_not_remembered() -> None:
    """A poll comes before the ConfigMaps, between two of them, or before the PE that follows."""
    calls, api = Calls(NOWHERE), GivenObjects()
    api.write(0, stage("a", {}, {"x": False}), "1")
    api.write(1, stage("b", {"x": False}, {}), "1")
    assert await seen(calls, api) == [("a", "b")]
    job = api.objects[JOB.path("n", "j")]
    job["status"] = {"generationId": 2}  # before anything is made with it
    assert await seen(calls, api) == [("a", "b")]
    api.write_config_map(0, stage("a", {}, {"y": False}), "2")
    api.write_pe(0, "a", "2")
    assert await seen(calls, api) == [(None, "b")]
    api.write_config_map(1, stage("b", {"y": False}, {}), "2")
    assert await seen(calls, api) == [(None, "b")]  # as long as nothing says so
    api.write_pe(1, "b", "2")
    assert await seen(calls, api) == [("a", "b")]


async def test_a_config_map_ahead_of_its_pe_is_not_taken_for_what_the_pe_is_made_of() -> None:
    calls, api = Calls(NOWHERE), GivenObjects()
    api.write_pe(0, "a", "1")
    api.write_config_map(0, stage("a", {"in": True}, {}), "2")
    assert await seen(calls, api) == [(None, "a")]
    api.write_config_map(0, stage("a", {}, {"out": True}), "1")  # back to what it was
    assert await seen(calls, api) == [("a", None)]


async def test_streams_of_a_stage_that_is_renamed_have_no_unknown_end() -> None:
    """The PE is still that of the former stage, its ConfigMap that of the new one."""
    calls, api = Calls(NOWHERE), GivenObjects()
    api.write(0, stage("a", {}, {"x": False}), "1")
    api.write(1, stage("b", {"x": False}, {}), "1")
    api.write_config_map(0, stage("renamed", {}, {"x": False}), "2")
    assert await seen(calls, api) == [(None, "b")]


@asynccontextmanager
async def kubelet(*log: bytes) -> AsyncIterator[KubeClient]:
    """Serve the lines of a log; `limitBytes` counts from the first that is asked for, as a
    kubelet's does."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        lines = log[-int(request.query["tailLines"]) :]
        left = int(request.query.get("limitBytes", sum(map(len, lines))))
        for line in lines:
            await response.write(line[:left])
            left -= min(left, len(line))
        return response

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with KubeClient(KubeConfig(server=url)) as client:
        yield client
    await runner.cleanup()


async def test_of_a_log_that_is_too_long_the_newest_lines_are_shown() -> None:
    lines = (b"%d %s\n" % (number, b"x" * 10_000) for number in range(500))
    async with kubelet(*lines) as client:
        shown = await Calls(NOWHERE).log(client, "n", "p", 300)
    assert len(shown) <= 2 * 2**20
    assert [line.split()[0] for line in shown.split("\n")[-2:]] == ["498", "499"]


async def test_of_a_short_log_all_lines_are_shown_that_are_asked_for() -> None:
    async with kubelet(*(b"%d\n" % number for number in range(5))) as client:
        assert await Calls(NOWHERE).log(client, "n", "p", 3) == "2\n3\n4"


async def test_a_log_without_newlines_takes_little_memory() -> None:
    async with kubelet(*[b"x" * 2**20] * 50, b"end") as client:
        tracemalloc.start()
        shown = await Calls(NOWHERE).log(client, "n", "p", 300)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert shown.endswith("xend")
    assert most < 20 * 2**20
