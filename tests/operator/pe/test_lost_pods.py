"""When a pod that does not end counts as lost, whatever the clocks of machines say."""

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from streamgraft_common.kube.client import Object
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.context import Context
from streamgraft_operator.pe.lost_pods import LOST_SECONDS, LostPodController

KEY = ("shop", "orders-1")
GRACE_SECONDS = 20


class Surroundings:
    """One pod, and what is done to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pod: Object | None = None
        self.deleted: list[int] = []
        self.monotonic = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.monotonic)
        pods = SimpleNamespace(get=lambda _: self.pod)
        caches = SimpleNamespace(pods=pods, processing_elements={})
        recorder = SimpleNamespace(record=lambda *_: None)
        write = SimpleNamespace(pods=SimpleNamespace(delete=self._delete))
        context = SimpleNamespace(caches=caches, recorder=recorder, write=write)
        self.controller = LostPodController(cast(Context, context))

    async def after(self, seconds: float) -> Any:
        """Reconcile the pod some seconds later; return what comes of it."""
        self.monotonic += seconds
        return await self.controller.reconcile(KEY)

    async def _delete(self, _: Object, grace_seconds: int) -> None:
        self.deleted.append(grace_seconds)


def terminating(uid: str = "u", ends_at: float = 0.0, grace: int = GRACE_SECONDS) -> Object:
    metadata: Object = {"namespace": KEY[0], "name": KEY[1], "uid": uid, "labels": {}}
    metadata |= {"deletionTimestamp": to_rfc3339(ends_at), "deletionGracePeriodSeconds": grace}
    return {"metadata": metadata, "spec": {}}


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    return Surroundings(monkeypatch)


@pytest.mark.parametrize("ahead", [-3600.0, 0.0, 3600.0])
async def test_clocks_need_not_agree(around: Surroundings, ahead: float) -> None:
    """Neither a pod that is ending is killed, nor does one that is lost stay."""
    around.pod = terminating(ends_at=time.time() - ahead + GRACE_SECONDS)
    assert await around.after(0) == GRACE_SECONDS + LOST_SECONDS
    assert await around.after(40) == 10
    assert not around.deleted
    assert await around.after(10) is None
    assert around.deleted == [0]


async def test_each_deletion_has_its_own_time(around: Surroundings) -> None:
    """A pod of the same name, and a deletion that leaves less time."""
    around.pod = terminating()
    await around.after(0)
    around.pod = terminating("another")
    assert await around.after(60) == GRACE_SECONDS + LOST_SECONDS
    around.pod = terminating("another", ends_at=-15.0, grace=5)
    assert await around.after(1) == 5 + LOST_SECONDS
    assert not around.deleted


@pytest.mark.parametrize("pod", [None, terminating(grace=0)], ids=["gone", "by force"])
async def test_nothing_is_kept_of_pods_that_go(around: Surroundings, pod: Object | None) -> None:
    around.pod = terminating()
    await around.after(0)
    around.pod = pod
    assert await around.after(100) is None
    around.pod = terminating()
    assert await around.after(0) == GRACE_SECONDS + LOST_SECONDS
    assert not around.deleted
