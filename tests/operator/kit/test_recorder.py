"""Events are posted in the background, whatever is in one of them."""

import asyncio
from typing import Any, cast

from streamgraft_common.kube import KubeClient
from streamgraft_operator.events import Event
from streamgraft_operator.kit.recorder import Recorder

JOB = {
    "apiVersion": "v1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "ns", "uid": "u"},
}


class PlayedClient:
    """Takes events; `problem`: what it raises for the first one."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.messages: list[str] = []
        self._problem = problem

    async def create(self, path: str, body: dict[str, Any]) -> None:
        """Note the message."""
        problem, self._problem = self._problem, None
        if problem:
            raise problem
        self.messages.append(body["message"])


async def posted(client: PlayedClient, *messages: str) -> list[str]:
    """Return what is posted of some messages."""
    recorder = Recorder(cast(KubeClient, client))
    running = asyncio.create_task(recorder.run())
    for message in messages:
        recorder.record(JOB, Event("Normal", "Tested", message))
    async with asyncio.timeout(5):
        await recorder.flush()
    assert not running.done(), "the operator ends with it"
    running.cancel()
    return client.messages


async def test_half_a_character_is_a_message_like_others() -> None:
    """JSON may have it, and so may what users wrote."""
    assert await posted(PlayedClient(), "\ud800", "next") == ["\ud800", "next"]


async def test_an_event_that_can_not_be_posted_keeps_none_back() -> None:
    assert await posted(PlayedClient(ValueError("odd")), "first", "next") == ["next"]
