"""Task slots of real-time mode, and how busy they are."""

import os
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from streamgraft_common.pe_metadata import InputPort, PeMetadata
from streamgraft_pe_runtime import slot_check
from streamgraft_pe_runtime.real_time import starvation, task_cpu_seconds
from streamgraft_pe_runtime.slot_check import NotEnoughSlots, check_slots


def metadata(region: str | None, *partitions: int | None) -> PeMetadata:
    """Return a real-time PE with inputs of so many partitions and two slots."""
    ports = [
        InputPort(
            port=number,
            stream=f"s{number}",
            topic=f"t{number}",
            partitions=count,
            bootstrap_servers="b:9092",
            operator="o",
        )
        for number, count in enumerate(partitions)
    ]
    return PeMetadata(
        namespace="n",
        job="j",
        pe_id=0,
        stage_name="s",
        region=region,
        shard_count=8 if region else 1,
        operators=["o"],
        inputs=ports,
        outputs=[],
        checkpoint_path="p",
        trigger_seconds=1.0,
        real_time=True,
        slots=2,
        bundle_digest="",
    )


@pytest.mark.parametrize(
    ("region", "partitions", "known", "scans", "needed"),
    [
        ("r", (8,), {}, 1, 8),
        ("r", (8,), {}, 2, 16),
        (None, (3, None), {("b:9092", "t1"): 4, ("c:9092", "t1"): 9}, 2, 7),
        (None, (None,), {("b:9092", "t0"): 4}, 3, 12),
    ],
)
def test_starvation(
    region: str | None,
    partitions: tuple[int | None, ...],
    known: dict[tuple[str, str], int],
    scans: int,
    needed: int,
) -> None:
    """Told with the number that is needed, of all scans of all partitions."""
    pe = metadata(region, *partitions)
    assert starvation(pe, known, scans, needed) is None
    reason = starvation(pe, known, scans, needed - 1)
    assert reason
    assert f"which are {needed}; the PE has {needed - 1}" in reason


@pytest.mark.parametrize(
    ("seen", "why"),
    [([], "none can be seen at b:9092"), ([0, 1, 2], "are 3; the PE has 2"), ([0, 1], "")],
)
def test_partitions_that_can_not_be_seen_are_not_taken_for_none(
    monkeypatch: pytest.MonkeyPatch, seen: list[int], why: str
) -> None:
    """Brokers say that there is no such topic to who may not see it."""
    brokers = SimpleNamespace(partitions=lambda topic: seen, close=lambda: None)
    monkeypatch.setattr(slot_check, "Brokers", lambda *_: brokers)
    session = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
    plan: Any = SimpleNamespace(frame=SimpleNamespace(sparkSession=session), scans=1)
    expected: Any = pytest.raises(NotEnoughSlots, match=why) if why else nullcontext()
    with expected:
        check_slots(plan, metadata(None, None), {"b:9092": {}})


def test_no_task_threads_no_cpu() -> None:
    """Other threads don't count."""
    assert task_cpu_seconds(os.getpid()) == 0
