"""Whether what is to be saved runs as the Job's spec has it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.operator.application.test_expansion import expanded
from tests.operator.integration.world import application, bundle

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import SavepointSpec
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.savepoint.running import runs

JOB = "ns", "job"
WHOLE = SavepointSpec(job="job")
REGION = SavepointSpec(job="job", region="r")
SINK = SavepointSpec(job="job", consistent_region="c", operators=["write"])
ALL = SavepointSpec(job="job", consistent_region="c", operators=["read", "work", "write"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A bundle of a source, a region and a sink."""
    return _file(tmp_path, application("topics"))


def _file(folder: Path, adl: dict[str, Any]) -> Path:
    path = folder / "tiny.zip"
    path.write_bytes(bundle(adl))
    return path


def _with(content: str) -> Object:
    return {"metadata": {"annotations": {names.ANNOTATION_CONTENT: content}}}


def caches(there: Expansion) -> Caches:
    """Return what the operator has made of a graph."""
    pes = {
        ("ns", pe.name): _with(str(there.contents[pe.pe_id]))
        for pe in there.topology.pes
        if pe.region is None
    }
    contents = there.region_contents.items()
    regions = {("ns", names.region_name("job", name)): _with(it) for name, it in contents}
    config_maps = {("ns", names.job_config_map("job")): _with(there.content_id)}
    found = SimpleNamespace(processing_elements=pes, regions=regions, config_maps=config_maps)
    return cast(Caches, found)


@pytest.mark.parametrize("wanted", [WHOLE, REGION, SINK, ALL])
async def test_what_was_made_runs(file: Path, wanted: SavepointSpec) -> None:
    expansion = await expanded(file)
    assert runs(caches(expansion), JOB, expansion, wanted)


async def test_behind_a_refused_edit_only_parts_that_it_leaves_alone_run_as_planned(
    file: Path, tmp_path: Path
) -> None:
    there, adl = caches(await expanded(file)), application("topics")
    adl["operators"][1]["code"] = "other"
    planned = await expanded(_file(tmp_path, adl))
    assert runs(there, JOB, planned, SINK)
    for spec in (WHOLE, REGION, ALL):
        assert not runs(there, JOB, planned, spec)


def shown(code: str) -> dict[str, Any]:
    """Return the application with another operator in front of its sink."""
    adl = application("topics")
    stream = {**adl["streams"][-1], "name": "shown", "producer": "show"}
    more = {"name": "show", "kind": "function", "function": "show", "code": code}
    adl["operators"][1]["code"] = "1"
    adl["operators"].insert(2, {**more, "inputs": ["done"], "outputs": ["shown"]})
    adl["operators"][3]["inputs"] = ["shown"]
    adl["streams"].append(stream)
    return adl


async def test_other_code_outside_of_regions_holds_up_no_cut(tmp_path: Path) -> None:
    there = caches(await expanded(_file(tmp_path, shown("1"))))
    planned = await expanded(_file(tmp_path, shown("2")))
    assert runs(there, JOB, planned, SINK)
    assert runs(there, JOB, planned, ALL)
    assert not runs(there, JOB, planned, WHOLE)


async def test_a_stage_with_other_operators_is_another_one(file: Path, tmp_path: Path) -> None:
    there = caches(await expanded(file))
    planned = await expanded(_file(tmp_path, shown("1")))
    assert not runs(there, JOB, planned, SINK)
    assert not runs(there, JOB, planned, WHOLE)


async def test_a_pe_that_is_not_there_is_waited_for_elsewhere(file: Path) -> None:
    expansion = await expanded(file)
    there = caches(expansion)
    there.processing_elements.clear()  # type: ignore[attr-defined]
    assert runs(there, JOB, expansion, ALL)
