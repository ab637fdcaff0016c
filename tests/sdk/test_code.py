"""Which edits of a module change which operators' code."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamgraft import Application
from streamgraft._adl import all_functions
from streamgraft._code import hashes

APPLICATION = '''
"""An application."""
import json
from functools import partial

import streamgraft as sg
from helper import cleaned
import lookup

LEAST = 3
TABLE = {}
TABLE["a"] = 1

app = sg.Application("edited")
rows = app.kafka_source("rows", topic="in", schema="key string, n long")


def _shared(frame):
    return frame.where(f"n > {LEAST}")


@app.operator(inputs=rows)
def first(frame):
    return cleaned(_shared(frame))


with app.parallel("work", key=["key"], max_width=2):

    @app.operator(inputs=first, output_mode="update")
    def second(frame):
        import late

        return late.counted(frame)

    @app.operator(inputs=second)
    def third(frame):
        return frame.where(lookup.condition(TABLE))


@app.sink(inputs=first)
def kept(frame, batch):
    pass


@app.on_commit(kept)
def published(cut):
    return 4


def make(limit):
    def made(frame):
        return frame.limit(limit)

    return made


app.operator(inputs=third)(make(1))
app.kafka_sink("out", input=third, topic="out")

if __name__ == "__main__":
    print("run")
'''
HELPER = """
FACTOR = 2


def cleaned(frame):
    return frame.limit(FACTOR)


def unused(frame):
    return frame
"""
MODULES = {
    "app": APPLICATION,
    "helper": HELPER,
    "lookup": "def condition(table):\n    return 'true'\n",
    "late": "import later\n\n\ndef counted(frame):\n    return frame\n",
    "later": "X = 1\n",
}
ALL = {"first", "second", "third", "made", "kept"}
Code = Callable[..., dict[str, str]]


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Code]:
    """Returns the hashes with texts of modules replaced."""

    def find(module: str = "", old: str = "", new: str = "") -> dict[str, str]:
        for name, text in MODULES.items():
            assert name != module or old in text
            changed = text.replace(old, new) if name == module else text
            (tmp_path / f"{name}.py").write_text(changed)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        application: Application = importlib.import_module("app").app
        return hashes(all_functions(application), tmp_path / "app.py", "app")

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield find
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("module", "old", "new", "changed"),
    [
        ("app", '"""An application."""', '"""Another text."""\n# and a remark\n\n', {"made"}),
        ("app", "return cleaned(", "return  cleaned(", {"made"}),
        ("app", "_shared(frame))", "_shared(frame).limit(1))", {"first", "made"}),
        ("app", "LEAST = 3", "LEAST = 4", {"first", "made"}),
        ("app", 'TABLE["a"] = 1', 'TABLE["a"] = 2', {"third", "made"}),
        ("app", "late.counted(frame)", "late.counted(frame).limit(1)", {"second", "made"}),
        ("app", 'topic="in"', 'topic="other"', {"made"}),
        ("app", 'output_mode="update"', 'output_mode="append"', {"made"}),
        ("app", "return 4", "return 5", {"kept", "made"}),
        ("app", 'print("run")', 'print("walk")', {"made"}),
        ("app", "TABLE = {}", "TABLE = {}\njson.x = 1", ALL),
        ("app", "TABLE = {}", "TABLE = {}\nprint(1)", ALL),
        ("helper", "FACTOR = 2", "FACTOR = 3", {"first", "made"}),
        ("helper", "def unused(frame):", "def unused(frame, more):", {"made"}),
        ("helper", "FACTOR = 2", "FACTOR = 2\nprint(2)", ALL),
        ("lookup", "'true'", "'false'", {"third", "made"}),
        ("late", "return frame", "return frame.limit(2)", {"second", "made"}),
        ("later", "X = 1", "X = 2", {"second", "made"}),
    ],
)
def test_what_an_edit_changes(
    code: Code, module: str, old: str, new: str, changed: set[str]
) -> None:
    """What another function has made counts with its whole module."""
    before, after = code(), code(module, old, new)
    assert {name for name in before if before[name] != after[name]} == changed
    assert before.keys() == ALL


@pytest.mark.parametrize("content", ["class {{ name }}:\n", "print 'two'\n", "x = '\0'\n"])
def test_a_file_that_does_not_parse_is_data(code: Code, tmp_path: Path, content: str) -> None:
    """Nobody imports it, and any function may read it."""
    package = tmp_path / "unread"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "template.py").write_text(content)
    before = code("app", "import lookup", "import lookup\nimport unread")
    (package / "template.py").write_text(f"{content}# more\n")
    after = code("app", "import lookup", "import lookup\nimport unread")
    assert {name for name in before if before[name] != after[name]} == ALL
