"""Versions of an application in one process: each has its modules, one at a time is entered."""

import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pe_runtime.conftest import ADL

from streamgraft_common.bundle import ADL_FILE
from streamgraft_common.code import code_of_pe
from streamgraft_common.pe_metadata import OutputPort, PeMetadata
from streamgraft_pe_runtime.application import Code, exchanged

MODULE = """
import several_versions_helper

class App:
    functions = {"plain": lambda frame: (NUMBER, several_versions_helper.NUMBER)}

    def bind(self, parameters):
        pass

app = App()
NUMBER = {number}
"""
MORE = OutputPort(
    port=0,
    stream="plain",
    topic="more",
    partitions=1,
    bootstrap_servers="",
    external=True,
    operator="more",
)
"""Of a sink that another version has."""
NAMES = ("several_versions", "several_versions_helper")


def bundle(number: int, code: str | None = None, module: str = MODULE) -> bytes:
    """Return the bundle of a version of the application."""
    operators = [item.model_copy(update={"code": code}) for item in ADL.operators]
    update = {"module": NAMES[0], "operators": operators}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(ADL_FILE, ADL.model_copy(update=update).model_dump_json(by_alias=True))
        archive.writestr(f"{NAMES[0]}.py", module.replace("{number}", str(number)))
        archive.writestr(f"{NAMES[1]}.py", f"NUMBER = {number}\n")
    return buffer.getvalue()


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    """Leave nothing behind in this process."""
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name in NAMES:
        sys.modules.pop(name, None)


def test_one_version_after_the_other(tmp_path: Path) -> None:
    """Who holds on to the former one has it as it was."""
    first, second = (Code.unpack(bundle(number), tmp_path) for number in (1, 2))
    old = first.enter()
    new = exchanged(first, second)
    assert old.functions["plain"](None) == (1, 1)
    assert new.functions["plain"](None) == (2, 2)
    assert sys.modules[NAMES[1]].__file__ == str(second.folder / f"{NAMES[1]}.py")
    back = exchanged(second, first)
    assert back is old


def test_earlier_versions_are_removed(tmp_path: Path) -> None:
    """But for the one that queries still run with."""
    first, second, third = (Code.unpack(bundle(number), tmp_path) for number in (1, 2, 3))
    third.remove_earlier(second)
    assert not first.folder.exists()
    assert sorted(tmp_path.iterdir()) == sorted([second.folder, third.folder])


def test_what_can_not_be_imported_leaves_the_former_one(tmp_path: Path) -> None:
    first = Code.unpack(bundle(1), tmp_path)
    broken = Code.unpack(bundle(2, module="import several_versions_helper\n1 / 0\n"), tmp_path)
    first.enter()
    helper, path = sys.modules[NAMES[1]], list(sys.path)
    with pytest.raises(ZeroDivisionError):
        exchanged(first, broken)
    assert sys.modules[NAMES[1]] is helper
    assert sys.path == path


def test_it_fits_the_pe_that_was_planned_with_its_code(tmp_path: Path) -> None:
    first, same, other = (
        Code.unpack(data, tmp_path) for data in (bundle(1, "a"), bundle(2, "a"), bundle(1, "b"))
    )
    assert first.digest != same.digest
    pe = PeMetadata(
        namespace="n",
        job="j",
        pe_id=0,
        stage_name="plain",
        operators=["plain"],
        inputs=[],
        outputs=[],
        checkpoint_path="",
        trigger_seconds=1,
        bundle_digest=first.digest,
    )
    planned = pe.model_copy(update={"code": code_of_pe(first.adl, first.digest, pe)})
    assert [item.fits(planned) for item in (first, same, other)] == [True, True, False]
    for without in ({"operators": ["removed"]}, {"outputs": [MORE]}):
        assert not first.fits(planned.model_copy(update=without))
