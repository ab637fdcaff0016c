"""Operators of two consistent regions share no PE, as that is cut and goes back as a whole."""

from typing import Any

import pytest
from tests.operator.application.test_expansion import SETTINGS
from tests.operator.graph.test_graph_plan import (
    SOURCE,
    application,
    function,
    fused,
    kafka_sink,
    planned,
    sink,
)
from tests.operator.graph.test_large_graphs import submission

from streamgraft_common.adl import Adl, ConsistentRegion
from streamgraft_common.resources import SavepointSpec
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.application.versions import Version
from streamgraft_operator.graph import GraphError
from streamgraft_operator.savepoint.part import planned_part


def cut(adl: Adl, **regions: list[str]) -> Adl:
    """Return an application with these consistent regions."""
    declared = [
        ConsistentRegion(name=name, operators=operators, period_seconds=5)
        for name, operators in regions.items()
    ]
    return adl.model_copy(update={"consistent_regions": declared})


FILES = sink("files", "enrich-rows").model_copy(update={"commits": True})
CHAIN = application(SOURCE, function("clean", "raw"), function("enrich", "clean-rows"), FILES)
WHOLE = ["src", "clean", "enrich", "files"]
FRONT, BACK = WHOLE[:2], WHOLE[2:]
BRANCHES = application(
    SOURCE,
    function("one", "raw"),
    function("two", "raw"),
    kafka_sink("out", "one-rows"),
    kafka_sink("other", "two-rows", "other"),
)


def test_a_chain_is_apart_where_one_region_ends_and_another_begins() -> None:
    assert fused(planned(cut(CHAIN, front=FRONT, back=BACK))) == [FRONT, BACK]


def test_only_one_of_two_branches_joins_their_source() -> None:
    both = cut(BRANCHES, left=["one", "out"], right=["two", "other"])
    assert fused(planned(both)) == [["src", "one", "out"], ["two", "other"]]


def test_an_endpoint_of_another_region_has_a_pe_of_its_own() -> None:
    adl = cut(BRANCHES, left=["src", "one", "two", "out"], right=["other"])
    assert fused(planned(adl)) == [["src", "one", "two", "out"], ["other"]]


@pytest.mark.parametrize("adl", [CHAIN, cut(CHAIN, all=WHOLE), cut(CHAIN, back=BACK)])
def test_one_region_or_none_keeps_nothing_apart(adl: Adl) -> None:
    """What is beside it is cut with it."""
    assert fused(planned(adl)) == [WHOLE]


def test_no_number_of_pes_joins_two_regions() -> None:
    adl = cut(CHAIN, front=FRONT, back=BACK)
    fusion = {"type": "manual", "peCount": 2}
    assert fused(submission(adl, fusion=fusion).topology({})) == [FRONT, BACK]
    with pytest.raises(GraphError, match="at least 2 PEs"):
        submission(adl, fusion={**fusion, "peCount": 1}).topology({})


def test_a_cut_commits_sinks_of_its_own_region_only() -> None:
    """Of others a rollback of their region would commit the batches a second time."""
    adl = cut(CHAIN, front=FRONT, back=BACK)
    planning = submission(adl)
    topology = planning.topology({})
    version = Version(1, {}, planning.spec, "image", planning.bundle)
    expansion = Expansion(version, topology, planning.resolved(topology), SETTINGS)
    commits: dict[str, Any] = {
        region.name: planned_part(
            expansion,
            SavepointSpec(job="job", consistent_region=region.name, operators=region.operators),
        ).commits
        for region in adl.consistent_regions
    }
    assert commits == {"front": frozenset(), "back": {"enrich"}}


def test_an_operator_of_two_regions_is_refused() -> None:
    """The build makes no such description."""
    with pytest.raises(GraphError, match="operator enrich is in consistent regions front and back"):
        planned(cut(CHAIN, front=[*FRONT, "enrich"], back=BACK))
