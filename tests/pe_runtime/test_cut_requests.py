"""Cuts that functions ask for, as a PE tells them."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.pe_runtime.test_own_element import element

from streamgraft_common.kube import KubeClient, NotFound, Unreachable
from streamgraft_common.resources import RuntimeStatus
from streamgraft_pe_runtime.metrics import PeMetrics
from streamgraft_pe_runtime.pe import request_cut
from streamgraft_pe_runtime.protocol import reporting
from streamgraft_pe_runtime.protocol.cut_requests import CutRequests
from streamgraft_pe_runtime.protocol.processing_element import Pod, ProcessingElement


class Api:
    """An API server that may be away, and what it was told of requests."""

    def __init__(self) -> None:
        self.away = True
        self.deleted = False
        """Whether the ProcessingElement is."""
        self.requests: dict[str, str] = {}

    async def patch(self, path: str, patch: dict[str, Any]) -> dict[str, Any]:
        if self.away:
            raise Unreachable("no answer")
        if self.deleted:
            raise NotFound(404, "NotFound", path)
        self.requests |= patch["status"]["runtime"].get("cutRequests", {})
        return {"status": {}}


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
async def ours(api: Api, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProcessingElement]:
    """A PE that reports."""
    monkeypatch.setattr(reporting, "_RETRY_SECONDS", (0.01, 0.01))
    ours = ProcessingElement(cast(KubeClient, api), Pod("ns", "p", "uid"), PeMetrics(1))
    ours.store.observe(element(1))
    reports = asyncio.create_task(ours._reporter.run())
    yield ours
    reports.cancel()
    await asyncio.gather(reports, return_exceptions=True)


async def test_a_batch_that_asks_for_a_cut_ends_once_that_is_noted(
    api: Api, ours: ProcessingElement
) -> None:
    """If the pod dies before, the batch runs again, and asks again."""
    loop = asyncio.get_running_loop()
    batch = asyncio.create_task(asyncio.to_thread(request_cut, loop, ours, "all"))
    await asyncio.sleep(0.1)
    assert not batch.done()
    api.away = False
    await batch
    assert api.requests.keys() == {"all"}


async def test_without_an_api_server_it_goes_on_after_a_while(
    api: Api, ours: ProcessingElement, caplog: pytest.LogCaptureFixture
) -> None:
    """The request is told when there is one again."""
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(request_cut, loop, ours, "all", 0.05)
    assert "request for a cut of all is not noted yet" in caplog.text
    api.away = False
    await asyncio.wait_for(ours.request_cut("rest"), 10)
    assert api.requests.keys() == {"all", "rest"}


async def test_a_request_is_noted_once_a_pe_that_was_deleted_is_there_again(
    api: Api, ours: ProcessingElement
) -> None:
    """Nobody has it before: without the pod, and its batch, it would be lost."""
    api.away, api.deleted = False, True
    asked = asyncio.create_task(ours.request_cut("all"))
    await asyncio.sleep(0.1)
    assert not asked.done()
    api.deleted = False
    ours.store.observe(element(2))
    await asyncio.wait_for(asked, 10)
    assert api.requests.keys() == {"all"}


@pytest.mark.parametrize("why", ["disown", "leave"])
async def test_no_request_is_noted_while_there_is_nobody_to_tell(
    why: str, api: Api, ours: ProcessingElement, caplog: pytest.LogCaptureFixture
) -> None:
    """Our pod is gone, or no PE has named it yet."""
    api.away = False
    getattr(ours._reporter, why)()
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(request_cut, loop, ours, "all", 0.1)
    assert "request for a cut of all is not noted yet" in caplog.text
    assert api.requests == {}


def test_a_pod_that_is_a_pe_s_again_asks_anew() -> None:
    """By way of the warm pool. What it asked for before has been done."""
    client: Any = SimpleNamespace()
    element = ProcessingElement(client, Pod("ns", "p", "uid"), PeMetrics(1))
    asked = set[str]()
    for _ in range(2):
        element._cut_requests.add("all")
        element._stream_changes.add(None, "out", "subscription", "n")
        asked |= set(element._cut_requests.all(None).values())
        asked |= {change.id for change in element._stream_changes.all(None)}
        assert element._let_go()
    assert len(asked) == 2


def test_each_call_is_a_request_of_its_own_and_the_next_launch_goes_on_telling() -> None:
    """The operator may not have seen what the last launch asked for."""
    before = CutRequests("one")
    assert before.all(None) == {}
    before.add("all")
    before.add("all")
    known = RuntimeStatus(cut_requests=before.all(None))
    assert known.cut_requests == {"all": "one.2"}
    after = CutRequests("two")
    assert after.all(known) == {"all": "one.2"}
    after.add("all")
    after.add("rest")
    assert after.all(known) == {"all": "two.1", "rest": "two.2"}
