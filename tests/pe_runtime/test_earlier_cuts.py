"""Which folders of a volume go with a new cut."""

from pathlib import Path

import pytest

from streamgraft_common.resources import Saving
from streamgraft_pe_runtime.earlier_cuts import MOST, remove_earlier

OTHERS = ("mine", "j-all-cut-x", "j-other-cut-1", "j-all-rollback-1", "other-j-all-cut-1")


def cut(number: int, *kept: int, commit: bool = False) -> Saving:
    return Saving(
        savepoint=f"j-all-cut-{number}",
        uid="u",
        shards=[0],
        cut=number,
        commit=commit,
        kept=[f"j-all-cut-{number}" for number in kept],
    )


def folders(root: Path, *names: str) -> Path:
    for name in names:
        (root / name / "work" / "0").mkdir(parents=True)
        (root / name / "savepoint.json").write_text("{}")
    return root


def left(root: Path) -> set[str]:
    return {folder.name for folder in root.iterdir()}


def test_earlier_ones_that_nobody_keeps(tmp_path: Path) -> None:
    """Be they of a former job of this name; what has another name is nobody's business."""
    numbers = {number: f"j-all-cut-{number}" for number in (1, 2, 3, 4, 5)}
    folders(tmp_path, *numbers.values(), *OTHERS)
    remove_earlier(tmp_path, cut(4, 2, 4))
    assert left(tmp_path) == {numbers[2], numbers[4], numbers[5], *OTHERS}


@pytest.mark.parametrize(
    "request_",
    [
        cut(4, 4, commit=True),
        cut(4),  # of an operator that does not say what is kept
        Saving(savepoint="j-all-cut-4", uid="u", shards=[0]),
    ],
)
def test_nothing_else_removes_any(tmp_path: Path, request_: Saving) -> None:
    folders(tmp_path, "j-all-cut-1")
    remove_earlier(tmp_path, request_)
    assert left(tmp_path) == {"j-all-cut-1"}


def test_many_go_a_few_at_a_time_the_oldest_first(tmp_path: Path) -> None:
    folders(tmp_path, *(f"j-all-cut-{number}" for number in range(1, MOST + 4)))
    remove_earlier(tmp_path, cut(100, 100))
    assert left(tmp_path) == {f"j-all-cut-{number}" for number in range(MOST + 1, MOST + 4)}
