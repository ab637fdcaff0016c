"""In a job that began from a savepoint, what is lost later is not taken from there once more."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgraft_pe_runtime.brokers import Bounds
from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged
from streamgraft_pe_runtime.joint_checkpoints import describe
from streamgraft_pe_runtime.ledgers import Entry
from streamgraft_pe_runtime.lost_checkpoints import life_of
from streamgraft_pe_runtime.shard_names import QUERIES
from streamgraft_pe_runtime.spark_work import SparkStage


class Prepared:
    """A stage that notes which shards would be made from the savepoint."""

    def __init__(self, folder: Path, ledger: str | None) -> None:
        self.shards: list[int] = []
        entry = Entry(f"{life_of(folder)}/random", 0)
        found = [(ledger, entry)] if ledger else []
        storage: Any = SimpleNamespace(
            folder=folder, checkpoint=lambda shard: folder / str(shard), prepare=self.shards.append
        )
        driver: Any = SimpleNamespace(
            state_provider=None,
            joint=False,
            obstacle="",
            ledgers=lambda metadata: SimpleNamespace(every=lambda: found),
            starts_at_latest=lambda port: False,
            ids_of=lambda inputs, noted: {},
        )
        metadata: Any = SimpleNamespace(shard_count=2, inputs=[])
        progress: Any = None
        self._stage = SparkStage(driver, storage, progress, metadata)

    def prepare(self, *shards: int) -> list[int]:
        """Return which shards were made."""
        self._stage._prepare(shards)
        return self.shards


@pytest.mark.parametrize(
    ("topic", "failed", "start"), [("in", "no leader", None), ("in", "", 3), ("former", "", 0)]
)
def test_where_a_shard_begins_that_nobody_has_run(
    tmp_path: Path, topic: str, failed: str, start: int | None
) -> None:
    """Its partition may have no leader, and the others may have positions of an input that an edit
    has dropped."""
    key = ("in", 5)
    bounds = Bounds(found={} if failed else {key: (3, 9)}, failed={key: failed} if failed else {})
    found = Prepared(tmp_path, None)._stage
    progress: Any = SimpleNamespace(
        brokers=lambda servers: SimpleNamespace(bounds=lambda keys: bounds)
    )
    found.progress = progress
    port: Any = SimpleNamespace(topic="in", bootstrap_servers="b:1")
    found._metadata.inputs.append(port)
    if start is None:
        with pytest.raises(OSError, match="partition 5 of in begins is not known: no leader"):
            found._start_of(topic, 5)
    else:
        assert found._start_of(topic, 5) == start


def test_shards_of_a_job_that_begins_are_made_from_the_savepoint(tmp_path: Path) -> None:
    assert Prepared(tmp_path, None).prepare(0, 1) == [0, 1]


def test_a_stage_that_has_written_since_is_refused(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path, "consumer group g")
    with pytest.raises(CheckpointDamaged, match="it has written"):
        prepared.prepare(0)
    assert prepared.shards == []


def test_a_shard_that_a_query_over_several_has_run_since_is_refused(tmp_path: Path) -> None:
    query = tmp_path / QUERIES / "0"
    describe(query, [0, 1], "")
    for folder in (query / "offsets", query / "commits", tmp_path / "0" / "offsets"):
        folder.mkdir(parents=True)
    for batch in ("0", "1"):
        (query / "commits" / batch).write_text("v1\n{}")
    prepared = Prepared(tmp_path, None)
    with pytest.raises(CheckpointDamaged, match="query 0 ran it"):
        prepared.prepare(0, 1)
    assert prepared.shards == [0]
