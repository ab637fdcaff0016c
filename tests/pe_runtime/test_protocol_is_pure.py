"""The protocol knows no more than it may: neither Spark nor Kafka, no threads, no files."""

import ast
from pathlib import Path

import pytest

import streamgraft_pe_runtime.protocol

MODULES = sorted(Path(streamgraft_pe_runtime.protocol.__path__[0]).glob("*.py"))
ALLOWED = {
    *("asyncio", "collections", "dataclasses", "logging", "re", "time", "typing"),
    *("streamgraft_common", "streamgraft_pe_runtime.protocol"),
}


def imported(module: Path) -> set[str]:
    """Return what a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_it_imports_only_what_it_may(module: Path) -> None:
    strange = {
        name
        for name in imported(module)
        if not any(name == known or name.startswith(f"{known}.") for known in ALLOWED)
    }
    assert strange == set()
    assert "to_thread" not in module.read_text()
