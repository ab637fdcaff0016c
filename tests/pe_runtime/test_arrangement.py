"""A checkpoint's files are put into the order of a plan; a note tells of which plan they are."""

import json
from pathlib import Path

import pytest

from streamgraft_pe_runtime.arrangement import NOTE, arrange, ended, finish, noted, rename_topics
from streamgraft_pe_runtime.checkpoint_files import LEDGERS, LOOSE, REAL_TIME
from streamgraft_pe_runtime.modes import end_loose
from streamgraft_pe_runtime.scan_order import EditedWays, OtherTopics, OtherWays, Scans

A, B, LATER = {"a": {"0": 7}}, {"b": {"0": 9}}, {"a": {"0": 8}}


def note(names: list[str]) -> str:
    """Return a note of a plan with these scans."""
    return json.dumps({"scans": names, "outputs": {}})


def begin(checkpoint: Path, *sources: object) -> None:
    """Write where sources began."""
    for number, source in enumerate(sources):
        (checkpoint / "sources" / str(number)).mkdir(parents=True)
        (checkpoint / "sources" / str(number) / "0").write_text(f"\0v1\n{json.dumps(source)}")


def begun(checkpoint: Path) -> list[str]:
    """Return what is in the files of sources, without their first line."""
    files = sorted(checkpoint.glob("sources/*/0"))
    return [file.read_text().partition("\n")[2] for file in files]


def test_no_way_is_renamed_while_its_batch_is_cut_off(tmp_path: Path) -> None:
    """The ledger knows what is written by the ways that rows went."""
    log = tmp_path / "offsets"
    log.mkdir()
    (log / "0").write_text("v1\n{}\n" + json.dumps(A))
    arrange(tmp_path, ["a#doubled"])
    mark = tmp_path / LEDGERS / REAL_TIME
    mark.parent.mkdir()
    mark.touch()
    arrange(tmp_path, ["a#doubled", "a#more"])
    arrange(tmp_path, ["a#doubled"])
    with pytest.raises(EditedWays, match="Set back what was edited"):
        arrange(tmp_path, ["a#twice"])
    mark.unlink()
    arrange(tmp_path, ["a#twice"])


def test_where_a_batch_has_ended_is_told_by_way(tmp_path: Path) -> None:
    """As the ledger tells it: before the first batch, where that begins."""
    assert ended(tmp_path) == ""
    (tmp_path / NOTE).write_text(note(["a#1", "b@u:1#2", "c#3"]))
    assert ended(tmp_path) == ""
    begin(tmp_path, {"a": {"0": 7, "1": 8}}, B, {})
    assert ended(tmp_path) == "1/a:0=7;1=8,2/b:0=9"
    for log, text in (("offsets", f"v1\n{{}}\n{json.dumps(LATER)}\n-\n-"), ("commits", "v1\n{}")):
        (tmp_path / log).mkdir()
        (tmp_path / log / "0").write_text(text)
    assert ended(tmp_path) == "1/a:0=8"
    (tmp_path / NOTE).write_text(note(["a#1"]))
    assert ended(tmp_path) == "", "its note is of another plan"
    (tmp_path / NOTE).write_text(note(["a", "b", "c"]))
    assert ended(tmp_path) == "", "it has no ways"


def test_where_ways_began_does_not_count_behind_a_batch(tmp_path: Path) -> None:
    begin(tmp_path, A, LATER)
    with pytest.raises(OtherWays):
        arrange(tmp_path, ["a#0", "a#0"])
    for log in ("offsets", "commits"):
        (tmp_path / log).mkdir()
        (tmp_path / log / "0").write_text("v1\n{}\n" + "\n".join(map(json.dumps, (B, B))))
    arrange(tmp_path, ["b#0", "b#0"])


def test_files_that_are_in_order_are_left_alone(tmp_path: Path) -> None:
    """And so are those of a plan with a scan whose topic nobody knows."""
    log = tmp_path / "offsets"
    log.mkdir()
    text = "v1\n{}\n" + "\n".join(map(json.dumps, (A, B)))
    for number in range(3):
        (log / str(number)).write_text(text)
    before = [(log / str(number)).stat().st_ino for number in range(3)]
    arrange(tmp_path, ["a", "b"])
    arrange(tmp_path, ["b", None])
    assert [(log / str(number)).stat().st_ino for number in range(3)] == before
    arrange(tmp_path, ["b", "a"])
    swapped = "v1\n{}\n" + "\n".join(map(json.dumps, (B, A)))
    assert [(log / str(number)).read_text() for number in range(3)] == [text, swapped, swapped]


def test_topics_of_one_name_in_two_clusters(tmp_path: Path) -> None:
    """Which positions are whose is noted; where it was not, the order counts."""
    log, eu, us = tmp_path / "offsets", {"a": {"0": 7}}, {"a": {"0": 9}}
    log.mkdir()
    (log / "0").write_text("v1\n{}\n" + "\n".join(map(json.dumps, (eu, us))))
    arrange(tmp_path, ["a@eu", "a@us"])
    arrange(tmp_path, ["a@us", "a@eu", "a@us"])
    assert (log / "0").read_text() == "v1\n{}\n" + "\n".join(map(json.dumps, (us, eu, us)))
    arrange(tmp_path, ["a@eu", "a@us"])
    assert (log / "0").read_text() == "v1\n{}\n" + "\n".join(map(json.dumps, (eu, us)))
    with pytest.raises(OtherTopics, match="it reads a@asia"):
        arrange(tmp_path, ["a@eu", "a@asia"])


def test_where_a_query_began_is_put_in_order_too(tmp_path: Path) -> None:
    begin(tmp_path, A, B)
    arrange(tmp_path, ["b", "b", "a"])
    assert begun(tmp_path) == [*map(json.dumps, (B, A))]


def test_a_start_that_was_cut_off_looks_again_where_sources_begin(tmp_path: Path) -> None:
    """Spark asks one source after the other. Whoever has the same plan goes on with that."""
    arrange(tmp_path, ["a", "b"])
    begin(tmp_path, A)
    arrange(tmp_path, ["a", "b"])
    assert begun(tmp_path) == [json.dumps(A)]
    arrange(tmp_path, ["b", "a"])
    assert begun(tmp_path) == []
    begin(tmp_path, B)
    arrange(tmp_path, ["b"])
    assert begun(tmp_path) == []


def test_a_start_that_was_cut_off_is_told_without_its_note(tmp_path: Path) -> None:
    """Another query has taken its shards over. What a batch was planned on stays."""
    begin(tmp_path, B)
    arrange(tmp_path, ["a", "b"])
    assert begun(tmp_path) == []
    for number, names in enumerate((["a"], ["a", "c"])):
        begin(tmp_path / str(number), B)
        with pytest.raises(OtherTopics):
            arrange(tmp_path / str(number), names)
    begin(tmp_path / "planned", B)
    (tmp_path / "planned" / "offsets").mkdir()
    (tmp_path / "planned" / "offsets" / "0").write_text("v1\n{}\n" + json.dumps(B))
    with pytest.raises(OtherTopics):
        arrange(tmp_path / "planned", ["a", "b"])


def test_sources_that_are_no_topics_may_have_no_beginning(tmp_path: Path) -> None:
    """An import has none; that of another source is its own affair."""
    log = tmp_path / "offsets"
    log.mkdir()
    lines = [json.dumps({"x": {"0": 1}}), json.dumps(A), "7"]
    (log / "0").write_text("\n".join(["v1", "{}", *lines]))
    arrange(tmp_path, ["import i", "a", "source rate"])
    for number, text in ((1, f"\0v1\n{json.dumps(A)}"), (2, "v1\nsomething")):
        (tmp_path / "sources" / str(number)).mkdir(parents=True)
        (tmp_path / "sources" / str(number) / "0").write_text(text)
    arrange(tmp_path, ["source rate", "import i", "a"])
    assert (log / "0").read_text().splitlines()[2:] == [lines[2], lines[0], lines[1]]
    found = {file.parent.name: file.read_text() for file in tmp_path.glob("sources/*/0")}
    assert found == {"0": "v1\nsomething", "2": f"\0v1\n{json.dumps(A)}"}


def test_no_source_may_be_a_topic(tmp_path: Path) -> None:
    (tmp_path / "sources" / "0").mkdir(parents=True)
    (tmp_path / "sources" / "0" / "0").write_text("v1\nsomething")
    arrange(tmp_path, ["source rate"])
    arrange(tmp_path, ["source sockets"])
    assert begun(tmp_path) == ["something"]


def test_whoever_is_cut_off_is_finished_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that are half in order would be put in order once more."""
    log, sources = tmp_path / "offsets", [A, LATER, B]
    log.mkdir()
    for number in range(2):
        (log / str(number)).write_text("v1\n{}\n" + "\n".join(map(json.dumps, sources)))
    begin(tmp_path, *sources)
    arrange(tmp_path, ["a#1", "a#2", "b#3"])
    writes = 0

    def cut_off(file: Path, content: str | bytes) -> None:
        nonlocal writes
        writes += 1
        if writes == 2:
            raise KeyboardInterrupt
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    with monkeypatch.context() as patch:
        patch.setattr("streamgraft_pe_runtime.arrangement.write", cut_off)
        with pytest.raises(KeyboardInterrupt):
            arrange(tmp_path, ["a#2", "a#1"])
    arrange(tmp_path, ["a#2", "a#1"])
    swapped = "v1\n{}\n" + "\n".join(map(json.dumps, (LATER, A)))
    assert [(log / str(number)).read_text() for number in range(2)] == [swapped, swapped]
    assert begun(tmp_path) == [*map(json.dumps, (LATER, A))]
    assert noted(tmp_path) == Scans(["a#2", "a#1"])
    finish(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"offsets", "sources", NOTE}


def test_outputs_are_noted_and_refused_amid_a_batch(tmp_path: Path) -> None:
    arrange(tmp_path, ["a#1"], {"1": ("x", "y")})
    assert noted(tmp_path) == Scans(["a#1"], {"1": ["x", "y"]})
    mark = tmp_path / LEDGERS / REAL_TIME
    mark.parent.mkdir()
    mark.touch()
    arrange(tmp_path, ["a#1"], {"1": ("x", "y", "z")})
    with pytest.raises(EditedWays, match="Set back what was edited"):
        arrange(tmp_path, ["a#1"], {"1": ("y",)})
    arrange(tmp_path, ["a#1"], {"1": ("y",)}, loose=True)


def test_what_comes_again_at_least_once_goes_the_same_way(tmp_path: Path) -> None:
    """Its readers count the rows of each way. Other outputs, more or fewer, make no difference."""
    arrange(tmp_path, ["a#1"], {"1": ("o>x", "y")}, loose=True)
    mark = tmp_path / LEDGERS / LOOSE
    mark.parent.mkdir()
    mark.write_text("100")
    arrange(tmp_path, ["a#1"], {"1": ("new>z", "o>x")}, loose=True)
    with pytest.raises(EditedWays, match="Set back what was edited"):
        arrange(tmp_path, ["a#2"], {"2": ("new>z", "o>x")}, loose=True)
    end_loose(tmp_path)
    arrange(tmp_path, ["a#2"], {"2": ("new>z", "o>x")}, loose=True)


def test_topics_of_a_note_are_renamed() -> None:
    """As those of a savepoint's logs are in another job."""
    text = json.dumps({"scans": ["a#1", "b@u:1#2"], "outputs": {"1": ["x"]}})
    (line,) = rename_topics([text, ""], {"a": "c"})
    assert json.loads(line) == {"scans": ["c#1", "b@u:1#2"], "outputs": {"1": ["x"]}}
