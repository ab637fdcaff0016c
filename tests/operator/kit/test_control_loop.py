"""One object that can't be read holds up nobody else: the loop of a controller goes on."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_operator.kit.caches import Collection
from streamgraft_operator.kit.control_loop import Controller, ControlLoop, Outcome, Watch


class Choosy(Controller):
    """Fails at everything that it is asked about objects called `bad`."""

    name = "choosy"

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self.seen: asyncio.Queue[Key] = asyncio.Queue()

    @property
    def watches(self) -> Sequence[Watch]:
        """The objects."""
        return (Watch(self._collection, self._keys, self._changed),)

    async def reconcile(self, key: Key) -> Outcome:
        """Note the key."""
        self._refuse(key)
        self.seen.put_nowait(key)
        return None

    def rest_seconds(self, key: Key) -> float:
        """Rest for no time."""
        self._refuse(key)
        return 0.0

    def _keys(self, item: Object) -> Iterable[Key]:
        self._refuse(key_of(item))
        return (key_of(item), ("ns", "bad"))

    def _changed(self, _: Object | None, new: Object | None) -> bool:
        self._refuse(key_of(new or {}))
        return True

    def _refuse(self, key: Key) -> None:
        if key[1] == "bad":
            raise ValueError("it can't be read")


def told(collection: Collection, name: str) -> None:
    """Tell of an object, as a watch would."""
    item: dict[str, Any] = {
        "metadata": {"namespace": "ns", "name": name, "resourceVersion": "1"},
        "spec": {},
    }
    collection.observe(item)


async def test_the_others_are_reconciled() -> None:
    client = KubeClient(KubeConfig(server="http://127.0.0.1:1"))
    collection = Collection(client, PARALLEL_REGION, ())
    controller = Choosy(collection)
    loop = ControlLoop(controller)
    told(collection, "bad")
    stopping = asyncio.Event()
    running = asyncio.create_task(loop.run(stopping))
    for name in ("a", "b"):
        told(collection, name)
    async with asyncio.timeout(10):
        assert {await controller.seen.get(), await controller.seen.get()} == {
            ("ns", "a"),
            ("ns", "b"),
        }
    stopping.set()
    await running
