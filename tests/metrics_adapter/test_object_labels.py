"""Labels of objects are followed on, whatever an answer was."""

import asyncio
from typing import Any, cast

import pytest

from streamgraft_common.kinds import POD
from streamgraft_common.kube import KubeClient
from streamgraft_metrics_adapter import supervision, telemetry
from streamgraft_metrics_adapter.api.object_labels import ObjectLabels
from streamgraft_metrics_adapter.selectors import parse
from streamgraft_metrics_adapter.status import UnavailableError


class PlayedClient:
    """Has no list at first."""

    def __init__(self) -> None:
        self.asked = 0

    async def list(self, *_: Any, **__: Any) -> dict[str, Any]:
        """Answer with something else, then with a pod."""
        self.asked += 1
        if self.asked == 1:
            return {"text": "a page of a proxy"}
        metadata = {"name": "p", "namespace": "ns", "resourceVersion": "1", "labels": {}}
        return {"metadata": {"resourceVersion": "1"}, "items": [{"metadata": metadata}]}

    async def watch(self, *_: Any, **__: Any) -> Any:
        """Deliver nothing."""
        await asyncio.Event().wait()
        yield None


async def test_what_is_no_list_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "RESTART_SECONDS", 0.01)
    counter = telemetry.UNEXPECTED_ERRORS.labels("part")
    before = counter._value.get()
    client = PlayedClient()
    labels = ObjectLabels(cast(KubeClient, client))
    running = asyncio.create_task(labels.run(lambda: {POD}))
    async with asyncio.timeout(5):
        while client.asked < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
    assert labels.names(POD, "ns", parse("")) == ["p"]
    assert counter._value.get() == before + 1
    running.cancel()


async def test_names_are_those_of_one_namespace_as_they_are_now() -> None:
    """Those of other namespaces are not looked at: a cluster may have many pods."""

    class Cluster(PlayedClient):
        async def list(self, *_: Any, **__: Any) -> dict[str, Any]:
            items = [
                {"metadata": {"name": name, "namespace": space, "resourceVersion": "1", **labels}}
                for space, name, labels in (
                    ("ns", "b", {"labels": {"app": "x"}}),
                    ("ns", "a", {"labels": {"app": "x"}}),
                    ("ns", "c", {}),
                    ("other", "d", {"labels": {"app": "x"}}),
                )
            ]
            return {"metadata": {"resourceVersion": "1"}, "items": items}

        async def watch(self, *_: Any, **__: Any) -> Any:
            gone = {"name": "a", "namespace": "ns", "resourceVersion": "2"}
            yield "DELETED", {"metadata": gone}
            await asyncio.Event().wait()

    labels = ObjectLabels(cast(KubeClient, Cluster()))
    running = asyncio.create_task(labels.run(lambda: {POD}))
    async with asyncio.timeout(5):
        while True:
            await asyncio.sleep(0.01)
            try:
                found = labels.names(POD, "ns", parse("app=x"))
            except UnavailableError:
                continue
            if found == ["b"]:
                break
    assert labels.names(POD, "ns", parse("")) == ["b", "c"]
    assert labels.names(POD, "nobody", parse("")) == []
    running.cancel()
