"""The files of a savepoint that is deleted."""

import shutil
from pathlib import Path

import pytest

from streamgraft_common import names
from streamgraft_operator.savepoint.files import remove, removed


def saved(folder: Path) -> Path:
    """Return the folder of a savepoint with two stages."""
    for stage in ("a", "b"):
        (folder / stage).mkdir(parents=True)
        (folder / stage / "stage.json").touch()
    return folder


def test_a_savepoint_is_gone_for_all_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody sees half of it, also if the operator ends amid it."""
    folder = saved(tmp_path / "first")

    def end(place: Path) -> None:
        assert not folder.exists()
        shutil.move(place / "a", tmp_path / "removed")
        raise OSError("the operator ends")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", end)
        with pytest.raises(OSError, match="ends"):
            remove(folder, "1")
    assert [item.name for item in tmp_path.iterdir() if item.name != "removed"] == [".first-1"]
    remove(folder, "1")
    assert [item.name for item in tmp_path.iterdir()] == ["removed"]
    with pytest.raises(FileNotFoundError):
        remove(folder, "1")


def test_what_was_made_anew_goes_with_what_an_earlier_try_left(tmp_path: Path) -> None:
    """By a pod that did not hear yet that nobody wants its copy."""
    saved(tmp_path / ".first-1")
    saved(tmp_path / "first")
    other = saved(tmp_path / ".first-2")
    remove(tmp_path / "first", "1")
    assert [*tmp_path.iterdir()] == [other]


def test_what_stays_is_told(tmp_path: Path) -> None:
    folder = saved(tmp_path / "first")
    assert removed(folder, "1", copied=True) == ""
    assert removed(folder, "1", copied=False) == "", "it never came to a copy"
    assert removed(folder, "1", copied=True) == "it is not on the operator's volume"
    folder.touch()
    assert "Not a directory" in removed(folder, "1", copied=True)


def test_copies_of_another_savepoint_of_the_name_stay(tmp_path: Path) -> None:
    """The object came back from a backup, with another uid."""
    folder = saved(tmp_path / "first")
    file = folder / names.SAVEPOINT_FILE
    file.write_text('{"uid": "1"}')
    assert removed(folder, "2", copied=False) == ""
    assert "only if nobody needs it, as it is another savepoint's (uid 1)" in removed(
        folder, "2", copied=True
    )
    file.write_text("{")
    assert "savepoint.json can't be read" in removed(folder, "1", copied=True)
    file.write_text('{"uid": "1"}')
    assert removed(folder, "1", copied=True) == ""
    assert not folder.exists()
