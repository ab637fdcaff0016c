"""docs/use/fields.md: every field of every kind is there, and everything that it names exists."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from streamgraft_common.resources import KINDS
from streamgraft_common.resources.crds import structural

ROOT = Path(__file__).parents[1]
DOCS = sorted(ROOT.glob("docs/**/*.md"))
PAGE = (ROOT / "docs" / "use" / "fields.md").read_text() + "\n"
SCHEMAS: dict[str, dict[str, Any]] = {
    kind.kind: {"spec": structural(kind.spec), "status": structural(kind.status)} for kind in KINDS
}

# The tables of the instance operator's design document.
DESIGN = {
    "Job": "bundle fusion imagePullPolicy imagePullSecret processingElement resources"
    " submissionTimeOutInSeconds submissionTimeValues threadingModel"
    " transportCertificateValidityInDays",
    "Bundle": "name pullPolicy secret url file.path github.url github.secret",
    "Fusion": "type automatic legacy manual",
    "Threading model": "automatic dedicated dynamic manual dynamic.elastic dynamic.threadCount",
    "Processing element": "buildType imagePullPolicy imagePullSecret sabName resources"
    " transportSecurityType allowPtrace runWithValgrind appTraceLevel runtimeTraceLevel"
    " deleteFailedPod restartCompletedPod restartDeletedPod restartFailedPod"
    " initialProbeDelayInSeconds probeFailureThreshold probeIntervalInSeconds dataPath"
    " dataVolumeClaim checkpointRepository appPropertiesSecret restrictedPropertiesSecret",
    "Volume claims and checkpoint stores": "volumeClaim.name volumeClaim.subPath fileSystem"
    " fileSystem.path fileSystem.volumeClaim redis redis.replicaCount redis.restrictedProperty"
    " redis.service redis.shardCount redis.shuffle",
}


OURS = "What is ours alone"


class Row(NamedTuple):
    """One line of a table; those of what is ours alone have no `theirs`."""

    theirs: str
    ours: str
    difference: str
    test: str


def tables() -> Iterator[tuple[str, list[Row]]]:
    """Yield the title and the rows of each section of the page."""
    for section in PAGE.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        lines = [
            [cell.strip(" `") for cell in line.split("|")[1:-1]]
            for line, after in pairwise([*body.splitlines(), ""])
            if line.startswith("| ") and not after.startswith("|--")
        ]
        empty = [""] if title == OURS else []
        yield title, [Row(*empty, *cells) for cells in lines]


ROWS = [row for _, rows in tables() for row in rows]


def test_every_field_of_the_design_is_mapped() -> None:
    mapped = {title: {row.theirs for row in rows} for title, rows in tables() if title != OURS}
    assert {title: mapped[title] for title in DESIGN} == {
        title: set(fields.split()) for title, fields in DESIGN.items()
    }


def exists(path: str) -> bool:
    """Return whether a kind has a field: `Kind.spec.some.field`, through lists and maps."""
    kind, part, *fields = path.split(".")
    schema = SCHEMAS.get(kind, {}).get(part)
    for field in fields:
        schema = _children(schema or {}).get(field)
    return schema is not None


def _children(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the fields below a field; those of what a list or a map holds are its own."""
    inner = schema.get("items") or schema.get("additionalProperties")
    if isinstance(inner, dict):
        return _children(inner)
    fields: dict[str, Any] = schema.get("properties", {})
    return fields


def leaves(schema: dict[str, Any], path: str) -> Iterator[str]:
    """Yield the paths of all fields that have none below."""
    children = _children(schema)
    for name, child in children.items():
        yield from leaves(child, f"{path}.{name}")
    if not children:
        yield path


@pytest.mark.parametrize("path", sorted({row.ours for row in ROWS}))
def test_our_fields_exist(path: str) -> None:
    assert exists(path)


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_no_page_names_a_field_that_does_not_exist(page: Path) -> None:
    named = re.findall(
        r"`((?:" + "|".join(SCHEMAS) + r")\.(?:spec|status)\.[\w.]*\w)", page.read_text()
    )
    assert [path for path in named if not exists(path)] == []


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_field_has_a_row(kind: str) -> None:
    """Of its own, or of a field that it is below and of which nothing below has a row."""
    rows = {row.ours for row in ROWS}
    divided = {
        ".".join(row.split(".")[:end]) for row in rows for end in range(3, row.count(".") + 1)
    }

    def covered(path: str) -> bool:
        parts = path.split(".")
        above = {".".join(parts[:end]) for end in range(2, len(parts))}
        return path in rows or not rows.isdisjoint(above - divided)

    parts = (leaves(schema, f"{kind}.{part}") for part, schema in SCHEMAS[kind].items())
    assert [path for paths in parts for path in paths if not covered(path)] == []


@pytest.mark.parametrize("path", sorted({row.ours for row in ROWS if not row.theirs}))
def test_a_row_of_our_own_is_said_once(path: str) -> None:
    assert [row.ours for row in ROWS].count(path) == 1


@pytest.mark.parametrize("name", sorted({row.test for row in ROWS}))
def test_tests_exist(name: str) -> None:
    file, _, function = name.partition("::")
    tree = ast.parse((ROOT / file).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = {node.name for node in ast.walk(tree) if isinstance(node, functions)}
    assert function in names if function else any(item.startswith("test_") for item in names)
