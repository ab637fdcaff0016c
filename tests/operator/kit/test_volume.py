"""A volume that never answers holds up no other purpose, and no other namespace."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB
from streamgraft_operator.application.bundles import FILE_PURPOSE
from streamgraft_operator.job.checkpoints import remove_checkpoints
from streamgraft_operator.kit import external_calls
from streamgraft_operator.kit.external_calls import (
    PARALLEL,
    PARALLEL_IN_NAMESPACE,
    ExternalCalls,
    UnderWay,
)
from streamgraft_operator.kit.volume import Volume


class Hanging:
    """A share whose server is away."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.asked = 0

    def look(self) -> str:
        """Wait for the server."""
        self.asked += 1
        self.answers.wait(60)
        return "there"


@pytest.fixture
def share(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    monkeypatch.setattr(external_calls, "PATIENCE_SECONDS", 0.01)
    share = Hanging()
    yield share
    share.answers.set()


def job(name: str, namespace: str = "shop") -> Object:
    return {**JOB.manifest(name, namespace, {}, uid=f"u-{name}"), "status": {"generationId": 1}}


async def asked(volume: Volume, share: Hanging, of: Object, file: str) -> None:
    """Have a worker look for a bundle on the share."""
    with pytest.raises(UnderWay):
        await volume.ask(of, FILE_PURPOSE, share.look, wanted=file)


async def test_checkpoints_are_removed_while_all_bundles_are_awaited(
    tmp_path: Path, share: Hanging
) -> None:
    volume = Volume(tmp_path, ExternalCalls())
    for number in range(PARALLEL + 1):
        namespace = f"n-{number // PARALLEL_IN_NAMESPACE}"
        await asked(volume, share, job(f"j-{number}", namespace), "a.zip")
    assert share.asked == PARALLEL
    folder = tmp_path / "shop" / "orders-u-orders"
    folder.mkdir(parents=True)
    async with asyncio.timeout(30):
        while folder.exists():
            try:
                await remove_checkpoints(volume, job("orders"))
            except UnderWay:
                await asyncio.sleep(0.01)


async def test_who_asks_for_one_file_after_the_other_takes_no_more_threads(
    tmp_path: Path, share: Hanging
) -> None:
    """What is given up waits on, in its thread: it counts against its namespace."""
    volume = Volume(tmp_path, ExternalCalls())
    for number in range(PARALLEL):
        await asked(volume, share, job("orders"), f"{number}.zip")
        volume.forget(("shop", "orders"), FILE_PURPOSE)  # deleted, and created anew
    assert share.asked == PARALLEL_IN_NAMESPACE

    async with asyncio.timeout(30):
        while True:
            try:
                other = job("clicks", "other")
                assert await volume.ask(other, FILE_PURPOSE, lambda: "read") == "read"
                break
            except UnderWay:
                await asyncio.sleep(0.01)
    share.answers.set()
    async with asyncio.timeout(30):
        while True:
            try:
                assert await volume.ask(job("orders"), FILE_PURPOSE, share.look) == "there"
                break
            except UnderWay:
                await asyncio.sleep(0.01)
