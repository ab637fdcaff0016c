"""Volume folders and log files on a real disk."""

import os
from pathlib import Path
from typing import Any

import pytest

from streamgraft_local.node.admission import refusal
from streamgraft_local.node.ended import KEPT_PODS, archive
from streamgraft_local.node.files import File, publish, write_atomically
from streamgraft_local.node.log_files import log_path, read, tail_offset
from streamgraft_local.node.references import MissingReference, Sources
from streamgraft_local.node.volumes import files_of, mounts_of, token_keys

SOURCES = Sources({("configmaps", "cm"): {"data": {"a": "1", "b": "2"}}})
POD: dict[str, Any] = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": []}}


def visible(folder: Path) -> dict[str, str]:
    """Return what a container sees of a volume."""
    names = [path for path in folder.rglob("*") if not path.name.startswith("..")]
    seen = [path for path in names if path.is_file() and ".." not in str(path.relative_to(folder))]
    return {str(path.relative_to(folder)): path.read_text() for path in seen}


def test_publish_swaps_the_whole_content(tmp_path: Path) -> None:
    publish(tmp_path, {"a": File(b"1"), "b": File(b"2")})
    assert visible(tmp_path) == {"a": "1", "b": "2"}
    first = (tmp_path / "..data").readlink()
    publish(tmp_path, {"a": File(b"1"), "b": File(b"2")})
    assert (tmp_path / "..data").readlink() == first
    publish(tmp_path, {"b": File(b"3"), "c": File(b"4", 0o600)})
    assert visible(tmp_path) == {"b": "3", "c": "4"}
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o600
    assert len(list(tmp_path.glob("..version_*"))) == 1


def test_publish_with_folders(tmp_path: Path) -> None:
    publish(tmp_path, {"x/y/a": File(b"1")})
    assert (tmp_path / "x" / "y" / "a").read_text() == "1"


def test_atomic_write_leaves_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_atomically(path, b"1")
    write_atomically(path, b"2", 0o644)
    assert path.read_bytes() == b"2"
    assert list(tmp_path.iterdir()) == [path]


def test_files_of_config_map() -> None:
    volume: dict[str, Any] = {"name": "v", "configMap": {"name": "cm", "defaultMode": 0o400}}
    assert files_of(volume, POD, SOURCES, {}, {})["a"] == File(b"1", 0o400)
    volume["configMap"]["items"] = [{"key": "b", "path": "x/b"}]
    assert files_of(volume, POD, SOURCES, {}, {}) == {"x/b": File(b"2", 0o400)}
    volume["configMap"]["items"] = [{"key": "none", "path": "x"}]
    with pytest.raises(MissingReference, match='key "none"'):
        files_of(volume, POD, SOURCES, {}, {})
    volume["configMap"]["optional"] = True
    assert files_of(volume, POD, SOURCES, {}, {}) == {}


def test_files_of_projected() -> None:
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 600, "audience": "x"}},
        {"configMap": {"name": "cm", "items": [{"key": "a", "path": "ca"}]}},
        {"downwardAPI": {"items": [{"path": "ns", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    volume = {"name": "v", "projected": {"sources": sources}}
    pod = POD | {"spec": {"containers": [], "volumes": [volume]}}
    assert token_keys(pod) == {("x", 600)}
    assert files_of(volume, pod, SOURCES, {("x", 600): "t"}, {}) == {
        "token": File(b"t", 0o600),
        "ca": File(b"1"),
        "ns": File(b"p"),
    }


def test_mounts_with_sub_path(tmp_path: Path) -> None:
    mounts = [
        {"name": "v", "mountPath": "/a"},
        {"name": "v", "mountPath": "/b", "subPath": "x"},
        {"name": "v", "mountPath": "/c", "subPathExpr": "$(NAME)"},
    ]
    found = mounts_of({"volumeMounts": mounts}, {"v": tmp_path}, {"NAME": "y"})
    assert found == {"/a": f"{tmp_path}", "/b": f"{tmp_path}/x", "/c": f"{tmp_path}/y"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"volumes": [{"name": "v", "nfs": {}}]}, "no volumes of kind nfs"),
        ({"initContainers": [{"name": "i", "restartPolicy": "Always"}]}, "no sidecar"),
        ({"containers": [{"name": "c", "livenessProbe": {"grpc": {}}}]}, "no gRPC probes"),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, ""),
    ],
)
def test_refusal(spec: dict[str, Any], words: str) -> None:
    found = refusal({"spec": {"containers": []} | spec})
    assert words in found
    assert bool(found) is bool(words)


@pytest.mark.parametrize(("lines", "tail"), [(0, b""), (1, b"c\n"), (2, b"b\nc\n"), (9, None)])
def test_tail(tmp_path: Path, lines: int, tail: bytes | None) -> None:
    content = b"a" * 100_000 + b"\nb\nc\n"
    path = tmp_path / "0.log"
    path.write_bytes(content)
    assert content[tail_offset(path, lines) :] == (content if tail is None else tail)


def test_newest_and_previous_log(tmp_path: Path) -> None:
    assert log_path(tmp_path, previous=False) is None
    for number in (0, 9, 10):
        (tmp_path / f"{number}.log").touch()
    assert log_path(tmp_path, previous=False) == tmp_path / "10.log"
    assert log_path(tmp_path, previous=True) == tmp_path / "9.log"


async def test_following_reads_what_was_written_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"one\n")
    runs = iter([True, False])

    def follow() -> bool:
        with open(path, "ab") as file:
            file.write(b"more\n")
        return next(runs)

    assert b"".join([block async for block in read(path, 0, follow)]) == b"one\nmore\nmore\n"


def test_logs_of_the_last_pods_are_kept(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    for number in range(KEPT_PODS + 2):
        folder = tmp_path / "pods" / f"ns_p_{number}" / "main"
        folder.mkdir(parents=True)
        (folder / "0.log").write_text(f"{number}\n")
        (folder / "1.log").touch()
        (folder / "state.json").touch()
        archive(folder.parent, ended)
        # Ages by number: the clock of the disk may be too coarse to tell them apart.
        os.utime(ended / f"ns_p_{number}", (number, number))
    assert not list((tmp_path / "pods").iterdir())
    assert len(list(ended.iterdir())) == KEPT_PODS
    newest = ended / f"ns_p_{KEPT_PODS + 1}" / "main"
    assert [path.name for path in newest.iterdir()] == ["0.log"]
    assert not (ended / "ns_p_0").exists()
