"""docs/use/fields.md: complete, and everything it names exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from streamgraft_common.resources import KINDS
from streamgraft_common.resources.crds import structural

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "use" / "fields.md").read_text()

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


class Row(NamedTuple):
    """One line of a table."""

    theirs: str
    ours: str
    difference: str
    test: str


def tables() -> Iterator[tuple[str, list[Row]]]:
    """Yield the title and the rows of each table of the page."""
    for section in PAGE.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        lines = [line for line in body.splitlines() if line.startswith("| ")][1:]
        yield title, [Row(*(cell.strip(" `") for cell in line.split("|")[1:-1])) for line in lines]


ROWS = [row for _, rows in tables() for row in rows]


def test_every_field_of_the_design_is_mapped() -> None:
    mapped = {title: {row.theirs for row in rows} for title, rows in tables()}
    assert {title: mapped[title] for title in DESIGN} == {
        title: set(fields.split()) for title, fields in DESIGN.items()
    }


@pytest.mark.parametrize("path", sorted({row.ours for row in ROWS}))
def test_our_fields_exist(path: str) -> None:
    kind, part, *fields = path.split(".")
    models = {item.kind: {"spec": item.spec, "status": item.status} for item in KINDS}
    schema: dict[str, Any] = structural(models[kind][part])
    for field in fields:
        assert field in schema["properties"], path
        schema = schema["properties"][field]


@pytest.mark.parametrize("name", sorted({row.test for row in ROWS}))
def test_tests_exist(name: str) -> None:
    file, _, function = name.partition("::")
    tree = ast.parse((ROOT / file).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = {node.name for node in ast.walk(tree) if isinstance(node, functions)}
    assert function in names if function else any(item.startswith("test_") for item in names)


def test_settings_without_a_row_are_our_own() -> None:
    """Whoever adds a setting of PEs looks at this page: mapped, or named here as ours alone."""
    ours_alone = {"image", "heapMb", "javaOptions", "env", "podTemplate"} | {
        "triggerSeconds",
        "sparkConf",
    }
    (job,) = (kind for kind in KINDS if kind.kind == "Job")
    settings = structural(job.spec)["properties"]["processingElement"]["properties"]
    mapped = set(re.findall(r"`Job\.spec\.processingElement\.(\w+)", PAGE))
    assert settings.keys() - mapped == ours_alone
