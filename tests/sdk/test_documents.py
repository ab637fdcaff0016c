"""The applications in the documentation are right, and the one that has a file is that file."""

import re
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

import streamgraft as sg
from streamgraft._checks import check, notices
from streamgraft._graph import OperatorNode

ROOT = Path(__file__).parents[2]


def application_of(module: Path) -> sg.Application:
    """Return the application that a module makes."""
    found = [
        value for value in runpy.run_path(str(module)).values() if isinstance(value, sg.Application)
    ]
    assert len(found) == 1
    return found[0]


def in_document(document: str, folder: Path) -> sg.Application:
    """Return the application of a document's first Python block."""
    block = re.search(r"^```python\n(.*?)^```$", (ROOT / document).read_text(), re.S | re.M)
    assert block
    module = folder / "app.py"
    module.write_text(block[1])
    return application_of(module)


def comparable(operator: OperatorNode) -> OperatorNode:
    """Return an operator without its place and its function's identity."""
    return replace(operator, location=sg.Location("", 0), function=None)


@pytest.mark.parametrize("document", ["README.md", "docs/use/applications.md"])
def test_documented_applications_pass_the_checks(document: str, tmp_path: Path) -> None:
    """What readers copy works."""
    graph = in_document(document, tmp_path).graph
    assert check(graph) == []
    assert notices(graph) == []


def test_documented_example_is_the_example(tmp_path: Path) -> None:
    """The page shows the graph of examples/wordcount."""
    shown = in_document("docs/use/applications.md", tmp_path)
    real = application_of(ROOT / "examples" / "wordcount" / "app.py")
    assert list(map(comparable, shown.graph.operators)) == list(
        map(comparable, real.graph.operators)
    )
    assert list(shown.parameters) == list(real.parameters)
