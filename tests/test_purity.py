"""Pure code imports nothing that could make it impure: lists of what it may import.

Pure are every `step.py`, the operator's graph and manifests, the autoscaler, and each module whose
docstring says "Pure.". Whatever of ours they import counts, too.
"""

import ast
import re
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(path.parent for path in ROOT.glob("*/streamgraft*/__init__.py"))
GRAPH = grimp.build_graph(*(path.name for path in PACKAGES), include_external_packages=True)
OURS = tuple(path.name for path in PACKAGES)
COMPUTING = {
    *("array", "base64", "bisect", "collections", "csv", "dataclasses", "datetime", "decimal"),
    *("enum", "fractions", "functools", "graphlib", "hashlib", "heapq", "html", "io", "itertools"),
    *("json", "lzma", "math", "operator", "re", "statistics", "string", "struct", "typing", "xml"),
    *("zipfile", "zlib"),
    *("coreforecast", "fnmatch", "lark", "numpy", "pydantic", "zoneinfo"),
}
"""Libraries that compute: no client, no event loop, no clock, no chance, no files, no log."""
PROTOCOL = COMPUTING | {"asyncio", "logging", "time"}
"""The protocol of a PE, and what starts its joint queries, is asyncio code over the Kubernetes
client, and knows no Spark, Kafka, threads or files (docs/decisions/0015-one-protocol.md)."""
CLOCKS = re.compile(r"\b(datetime\.now|date\.today|open)\(|\.(read|write)_(text|bytes)\(")


def source(module: str) -> Path:
    """Return the file of a module of ours."""
    package, *rest = module.split(".")
    (folder,) = [path for path in PACKAGES if path.name == package]
    path = folder.joinpath(*rest)
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def says_pure(module: str) -> bool:
    """Return whether a module's docstring says that it is pure."""
    text = ast.get_docstring(ast.parse(source(module).read_text())) or ""
    return bool(re.search(r"\bPure\.(\s|$)", text))


def is_pure(module: str) -> bool:
    """Return whether a module has to be pure."""
    places = ("streamgraft_operator.graph", "streamgraft_autoscaler")
    return module.startswith(places) or module.endswith(".step") or says_pure(module)


LENDER = "streamgraft_common.kube"
"""It lends pure code the types of objects and keys, and the protocol its client: its imports do not
count."""
MODULES = sorted(module for module in GRAPH.modules if module.startswith(OURS))


def libraries(module: str) -> set[str]:
    """Return what of others a module imports, itself or by way of ours."""
    found, ahead = set(), {module}
    while ahead:
        name = ahead.pop()
        found.add(name)
        if name.startswith(OURS) and not name.startswith(LENDER):
            ahead |= GRAPH.find_modules_directly_imported_by(name) - found
    return {name for name in found if not name.startswith(OURS)}


@pytest.mark.parametrize("module", [module for module in MODULES if is_pure(module)])
def test_pure_code_only_computes(module: str) -> None:
    assert libraries(module) - COMPUTING == set()
    assert CLOCKS.findall(source(module).read_text()) == []


def is_protocol(module: str) -> bool:
    """Return whether a module is what the simulation runs of a PE."""
    return ".protocol" in module or module == "streamgraft_pe_runtime.joint_query"


@pytest.mark.parametrize("module", [name for name in MODULES if is_protocol(name)])
def test_the_protocol_of_a_pe_knows_neither_spark_nor_kafka(module: str) -> None:
    assert libraries(module) - PROTOCOL == set()
    assert "to_thread" not in source(module).read_text()
