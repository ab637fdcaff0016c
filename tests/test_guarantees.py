"""What the docs promise line by line: each line of such a table names a test that exists."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("use/guarantees.md", "operate/threat-model.md", "operate/compatibility.md")
LINES = {
    page: [
        line
        for line, after in pairwise((ROOT / "docs" / page).read_text().splitlines())
        if line.startswith("| ") and not after.startswith("|--")
    ]
    for page in PAGES
}


@pytest.mark.parametrize("page", PAGES)
def test_there_is_a_table(page: str) -> None:
    assert len(LINES[page]) >= 5


@pytest.mark.parametrize("line", [line for page in PAGES for line in LINES[page]])
def test_line_names_a_test(line: str) -> None:
    found = re.search(r"`(tests/[\w/]+\.py)::(\w+)`( \(long\))? \|$", line)
    assert found
    tree = ast.parse((ROOT / found[1]).read_text())
    functions = {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert found[2] in functions
    marks = [
        item.value
        for item in tree.body
        if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "pytestmark"
    ]
    marks += [
        mark
        for mark in functions[found[2]].decorator_list
        if ast.unparse(mark) == "pytest.mark.long"
    ]
    is_long = any("pytest.mark.long" in ast.unparse(mark) for mark in marks)
    assert bool(found[3]) == is_long, "a test that is not part of every change is marked (long)"
