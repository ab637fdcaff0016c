"""Positions in checkpoints."""

import json
from pathlib import Path

from streamgraft_pe_runtime.positions import Checkpoint, merged, read_checkpoint


def write_batch(checkpoint: Path, number: int, offsets: object, *, committed: bool) -> None:
    """Write the log files of a batch as Spark does."""
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True, exist_ok=True)
    text = "\n".join(["v1", "{}", "-", json.dumps(offsets)])
    (checkpoint / "offsets" / str(number)).write_text(text)
    if committed:
        (checkpoint / "commits" / str(number)).write_text("v1\n{}")


def test_no_checkpoint_is_clean(tmp_path: Path) -> None:
    """Nothing has been begun."""
    assert read_checkpoint(tmp_path) == Checkpoint(clean=True, positions={})


def test_committed_batches_count(tmp_path: Path) -> None:
    """The newest by number, not by text: 10 comes after 9."""
    for number in (9, 10):
        write_batch(tmp_path, number, {"t": {"0": number, "1": 5}}, committed=True)
    (tmp_path / "offsets" / ".10.crc").write_bytes(b"x")
    assert read_checkpoint(tmp_path) == Checkpoint(True, {("t", 0): 10, ("t", 1): 5})


def test_a_batch_begun_is_not_clean(tmp_path: Path) -> None:
    """Its positions are those of the batch before."""
    write_batch(tmp_path, 0, {"t": {"0": 7}}, committed=True)
    write_batch(tmp_path, 1, {"t": {"0": 9}}, committed=False)
    assert read_checkpoint(tmp_path) == Checkpoint(False, {("t", 0): 7})


def test_the_first_batch_begun_is_not_clean(tmp_path: Path) -> None:
    """There is no position yet."""
    write_batch(tmp_path, 0, {"t": {"0": 9}}, committed=False)
    assert read_checkpoint(tmp_path) == Checkpoint(False, {})


def test_of_a_topic_that_is_read_in_several_ways_the_earliest_counts() -> None:
    assert merged([{"t": {"0": 7}}, {"t": {"0": 5, "1": 9}}, {"t": {"0": 6}}]) == {
        ("t", 0): 5,
        ("t", 1): 9,
    }


def test_topics_of_one_name_in_two_clusters_are_two_places() -> None:
    names = ["t@a:1#1", "t@b:1#2", "t@a:1#3", "import i"]
    ends = [{"t": {"0": 7}}, {"t": {"0": 5}}, {"t": {"0": 6}}, {"x": {"0": 1}}]
    assert merged(ends, names) == {("t@a:1", 0): 6, ("t@b:1", 0): 5, ("x", 0): 1}
    assert merged(ends, names[:2])["t", 0] == 5, "its note is of another plan"


def test_offsets_of_other_sources_are_left_out() -> None:
    """A rate source has a number, a source without data nothing, and Python's what they like."""
    others = [{"offsets": {"shard-a": 5}}, {"a": {"1": {"x": 2}}}, {"b": {"1": True}}]
    assert merged([12, None, {"logOffset": 3}, *others, {"t": {"2": 4}}]) == {("t", 2): 4}
