"""Files of checkpoints that can't be read are named, and nothing is written to them."""

import json
from pathlib import Path

import pytest

from streamgraft_pe_runtime import query_logs
from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged, check
from streamgraft_pe_runtime.joint_checkpoints import JointCheckpoints
from streamgraft_pe_runtime.positions import read_checkpoint

OFFSETS = 'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"t":{"0":5}}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """The checkpoint of shard 0, run alone, after its batch 0."""
    folder = tmp_path / "0"
    for name, text in (
        ("metadata", json.dumps({"id": "x"})),
        ("offsets/0", OFFSETS),
        ("commits/0", COMMIT),
    ):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def test_a_whole_checkpoint_is_fine(checkpoint: Path, tmp_path: Path) -> None:
    check(checkpoint)
    check(tmp_path / "new")
    (checkpoint / "offsets" / "1").write_text(OFFSETS.replace('{"t":{"0":5}}', "-"))
    check(checkpoint)


@pytest.mark.parametrize("name", ["metadata", "offsets/0", "commits/0"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"v1", b"{", b"v1\n{"])
def test_damaged_files_are_named(checkpoint: Path, name: str, content: bytes) -> None:
    (checkpoint / name).write_bytes(content)
    with pytest.raises(CheckpointDamaged, match=f"{checkpoint / name}: "):
        check(checkpoint)
    assert (checkpoint / name).read_bytes() == content


def test_readers_say_the_same(checkpoint: Path) -> None:
    (checkpoint / "offsets" / "0").write_bytes(b"\xff")
    for read in (query_logs.read, query_logs.is_closed, read_checkpoint):
        with pytest.raises(CheckpointDamaged, match="offsets/0: "):
            read(checkpoint)
    (checkpoint / "offsets" / "0").unlink()
    with pytest.raises(CheckpointDamaged, match="offsets/0: it is missing"):
        query_logs.read(checkpoint)


@pytest.mark.parametrize("name", ["0/queries/0", "queries/*/shards.json"])
@pytest.mark.parametrize("content", [b"", b"[]x", b"\xff", b'"text"', None])
def test_names_of_queries(
    checkpoint: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    """Whose a shard is can't be told; nobody takes it over then."""
    stage = JointCheckpoints(tmp_path, lambda *_: None)
    stage.take_over([0], lambda *_: 0)
    (file,) = tmp_path.glob(name)
    if content is None and name.startswith("0/"):
        return  # then there was no takeover
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CheckpointDamaged, match=f"{file}: "):
        stage.take_over([0], lambda *_: 0)
    assert sorted(tmp_path.rglob("*")) == before
