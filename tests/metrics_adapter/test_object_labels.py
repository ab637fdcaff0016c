"""Labels of objects are followed on, whatever an answer was."""

import asyncio
from typing import Any, cast

import pytest

from streamgraft_common.kinds import POD
from streamgraft_common.kube import KubeClient
from streamgraft_metrics_adapter import supervision, telemetry
from streamgraft_metrics_adapter.api.object_labels import ObjectLabels
from streamgraft_metrics_adapter.selectors import parse


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
