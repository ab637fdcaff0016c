"""Properties of the code itself, checked as tests (after tigerbeetle's tidy.zig)."""

import ast
import operator
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMPONENTS = (
    "autoscaler",
    "common",
    "deploy",
    "metrics_adapter",
    "operator",
    "pe_runtime",
    "sdk",
)
MODULES = [path for name in COMPONENTS for path in sorted((ROOT / name).rglob("*.py"))]
BANNED = {
    "unittest.mock": "run the real thing, or write a small fake that says so in its name",
    "TODO": "do it, or write an issue",
    "FIXME": "do it, or write an issue",
}
PYTHON = [
    *MODULES,
    *sorted((ROOT / "tests").rglob("*.py")),
    *sorted((ROOT / "bench").rglob("*.py")),
]


def name_of(path: Path) -> str:
    """Return the path as the test ids show it."""
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("name", [*COMPONENTS, "tests", "tests/operator"])
def test_component_folder_is_no_package(name: str) -> None:
    """An `__init__.py` in `operator/` would hide the standard library's module."""
    assert not (ROOT / name / "__init__.py").exists()


def test_operator_is_the_standard_library() -> None:
    """`import operator` finds the standard library from the repository root."""
    assert Path(str(operator.__file__)).is_relative_to(sys.base_prefix)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_functions_fit_a_screen(path: Path) -> None:
    """No function is longer than 70 lines, no module longer than 400."""
    text = path.read_text()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    long = [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, functions) and (node.end_lineno or 0) - node.lineno >= 70
    ]
    assert not long
    assert len(text.splitlines()) <= 400


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_say_what_they_are_for(path: Path) -> None:
    """Every module has a docstring: its purpose and its place."""
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", PYTHON, ids=name_of)
def test_nothing_banned(path: Path) -> None:
    """Neither mocks nor promises."""
    if path == Path(__file__):
        return
    text = path.read_text()
    assert [word for word in BANNED if word in text] == []
