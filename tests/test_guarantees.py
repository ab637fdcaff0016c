"""What the docs promise line by line: each line of such a table names a test that exists."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("use/guarantees.md", "operate/threat-model.md")
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
    assert len(LINES[page]) > 10


@pytest.mark.parametrize("line", [line for page in PAGES for line in LINES[page]])
def test_line_names_a_test(line: str) -> None:
    found = re.search(r"`(tests/[\w/]+\.py)::(\w+)` \|$", line)
    assert found
    tree = ast.parse((ROOT / found[1]).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert found[2] in {node.name for node in ast.walk(tree) if isinstance(node, functions)}
