"""docs/use/guarantees.md: each line of its table names a test that exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINES = [
    line
    for line in (ROOT / "docs" / "use" / "guarantees.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| what happens")
]


def test_there_is_a_table() -> None:
    assert len(LINES) > 10


@pytest.mark.parametrize("line", LINES)
def test_line_names_a_test(line: str) -> None:
    found = re.search(r"`(tests/[\w/]+\.py)::(\w+)` \|$", line)
    assert found
    tree = ast.parse((ROOT / found[1]).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert found[2] in {node.name for node in ast.walk(tree) if isinstance(node, functions)}
