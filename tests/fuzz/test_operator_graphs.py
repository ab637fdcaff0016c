"""Descriptions made by hand: each is planned with all that is made of it, or a GraphError says why
not, however large it is and whatever it names."""

import copy
import json
import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.fuzz.cases import CASES
from tests.fuzz.test_operator_bundles import mutations
from tests.operator.application.test_expansion import SETTINGS
from tests.operator.graph.test_large_graphs import chain

from streamgraft_common.adl import Adl
from streamgraft_common.bundle import Bundle
from streamgraft_common.edits import outcomes
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JobSpec
from streamgraft_operator import manifests
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.application.versions import Version, config_map
from streamgraft_operator.graph import GraphError, Submission
from streamgraft_operator.graph.sizes import check_sizes
from streamgraft_operator.manifests.autoscaler import autoscaler
from streamgraft_operator.manifests.metadata import Owner
from streamgraft_operator.manifests.shared_streams import shared_streams
from streamgraft_operator.settings import Settings

OWNER = Owner("ns", "job", "uid", 1)
LARGEST_OBJECT_BYTES = 1.5 * (1 << 20)
"""What etcd takes."""


def _operator(name: str, kind: str, **fields: Any) -> Object:
    return {"name": name, "kind": kind, **fields}


def _function(name: str, *inputs: str, **fields: Any) -> Object:
    return _operator(name, "function", inputs=list(inputs), outputs=[name], code="c", **fields)


def _stream(name: str) -> Object:
    columns = [{"name": "key", "type": "string", "nullable": True, "metadata": {}}]
    return {"name": name, "producer": name, "schema": {"type": "struct", "fields": columns}}


STATE = [{"operator": "stateStoreSave", "key": [{"name": "key", "type": "string"}], "value": []}]
ADL: Object = {
    "format": 1,
    "name": "rich",
    "builtBy": "0.1.0",
    "module": "rich",
    "application": "app",
    "operators": [
        _operator("in", "kafka-source", outputs=["in"], kafka={"topic": "in"}),
        _operator("own", "source", outputs=["own"]),
        _operator("shared", "import", outputs=["shared"], imported={"subscription": "level >= 1"}),
        _function("all", "in", "own", "shared", placement={"exlocate": ["a"]}),
        _operator(
            "parts",
            "split",
            inputs=["all"],
            outputs=["few", "many"],
            split=[{"stream": "few", "condition": "x"}, {"stream": "many", "condition": "y"}],
        ),
        _function("counts", "many", region="r", stateful=True, state=STATE, parameters={"p": "1"}),
        _function("sums", "counts", region="r", realTime=True, fusionGroup=1),
        _function("late", "few", "few", "sums", region="q", placement={"hostPool": "fast"}),
        _operator("keep", "sink", inputs=["few"], commits=True),
        _operator("out", "kafka-sink", inputs=["sums", "late"], kafka={"topic": "out"}),
        _operator("offer", "export", inputs=["sums"], exported={"name": "sums"}),
    ],
    "streams": [
        _stream(name)
        for name in ("in", "own", "shared", "all", "few", "many", "counts", "sums", "late")
    ],
    "regions": [
        {
            "name": "r",
            "key": ["key"],
            "width": 2,
            "maxWidth": 4,
            "autoscaling": {"utilizationWeights": {"counts": 2.0}},
        },
        {"name": "q", "key": ["key"], "maxWidth": 3, "placement": {"host": "node-1"}},
    ],
    "consistentRegions": [{"name": "c", "operators": ["all", "keep"], "periodSeconds": 9.0}],
    "services": [{"name": "api", "operator": "counts", "port": 80}],
    "hostPools": [{"name": "fast", "tags": ["ssd"], "size": 1}],
    "parameters": {"p": "1"},
}
SPECS: list[Object] = [
    {},
    {"fusion": {"type": "legacy"}},
    {"fusion": {"type": "manual"}, "resources": {"limits": {"cpu": "3"}}},
    {"fusion": {"type": "manual", "peCount": 8}, "regions": {"r": {"width": 3}}},
    {"fusion": {"channels": "ChannelIsolation"}},
]


def expansion_of(adl: Adl, spec: Object) -> Expansion:
    """Return the expansion of a job. Raises GraphError."""
    job = JobSpec.model_validate({"bundle": {"configMap": {"name": "b"}}, **spec})
    submission = Submission("ns", "job", "uid", job, Bundle(adl, "d" * 64), "kafka:9092")
    topology = submission.topology(submission.widths({}))
    version = Version(1, {}, job, "image", submission.bundle)
    found = Expansion(version, topology, submission.resolved(topology), SETTINGS)
    check_sizes(topology, found.stages)
    return found


def objects_of(expansion: Expansion, settings: Settings = SETTINGS) -> list[Object]:
    """Return all that is written for a job."""
    adl, spec, topology = expansion.bundle.adl, expansion.spec, expansion.topology
    volume = expansion.checkpoints
    found = [
        config_map(OWNER, expansion.version),
        manifests.job_config_map(OWNER, topology.port_labels, expansion.stages, "c", volume),
        *(manifests.host_pool(OWNER, item) for item in adl.host_pools),
        *(manifests.declared_service(OWNER, topology, item) for item in adl.services),
        *(manifests.consistent_region(OWNER, item) for item in adl.consistent_regions),
        *(item.manifest for item in shared_streams(OWNER, adl, topology)),
    ]
    for region in topology.regions:
        made = manifests.parallel_region(OWNER, spec, topology, region, "c")
        scaled = autoscaler({**made, "metadata": {**made["metadata"], "uid": "r"}})
        found += [made, *([scaled] if scaled else [])]
    for pe in topology.pes:
        content = str(expansion.contents[pe.pe_id])
        element = manifests.processing_element(OWNER, spec, pe, content, (0,), 1)
        there = {**element, "metadata": {**element["metadata"], "uid": "pe"}}
        found += [
            element,
            manifests.pe_config_map(OWNER, pe, content),
            manifests.service(OWNER, pe),
            manifests.pod({**there, "status": {"launchCount": 1}}, OWNER, spec, settings, None),
            manifests.warm_pod("warm", pe, OWNER, spec, settings),
        ]
    return found


@pytest.mark.parametrize("spec", SPECS)
def test_the_description_that_is_changed_is_a_good_one(spec: Object) -> None:
    expansion = expansion_of(Adl.model_validate(ADL), spec)
    kinds = {item["kind"] for item in objects_of(expansion)}
    assert {"ParallelRegion", "HostPool", "ConsistentRegion", "Import", "Export"} <= kinds
    assert len(outcomes(expansion.stages, expansion.stages)) > len(expansion.topology.stages) / 2


@pytest.mark.parametrize("spec", SPECS[:2])
def test_the_objects_of_the_largest_graph_fit(spec: Object) -> None:
    sizes = [len(json.dumps(item)) for item in objects_of(expansion_of(chain(1_000), spec))]
    assert max(sizes) < LARGEST_OBJECT_BYTES


def plan(adl: Object, spec: Object) -> None:
    """Plan a job and make all of it, unless it can't be."""
    try:
        description = Adl.model_validate(adl)
    except ValidationError:
        return
    with suppress(GraphError):
        assert objects_of(expansion_of(description, spec))
        event("planned")


@settings(max_examples=CASES, deadline=None)
@given(mutations(ADL), st.sampled_from(SPECS))
def test_any_values(adl: Object, spec: Object) -> None:
    plan(adl, spec)


NAMES = [*(item["name"] for item in ADL["operators"]), "few", "many", "r", "q", "c", "nobody"]


def rewired(chance: random.Random) -> Object:
    """Return the description with other names here and there: what is read, made, grouped."""
    adl = copy.deepcopy(ADL)
    for _ in range(chance.randint(1, 4)):
        operator = chance.choice(adl["operators"])
        some = [chance.choice(NAMES) for _ in range(chance.randint(0, 3))]
        match chance.randrange(9):
            case 0 | 1:
                operator["inputs"] = some
            case 2:
                operator["outputs"] = some
            case 3:
                operator["kind"] = chance.choice(adl["operators"])["kind"]
            case 4:
                operator["region"] = chance.choice([None, "r", "q", "nobody"])
            case 5:
                adl["operators"].remove(operator)
            case 6:
                adl["operators"].append({**operator, "name": chance.choice(NAMES)})
            case 7:
                adl["streams"].append(_stream(chance.choice(NAMES)))
            case _:
                which = chance.choice(["consistentRegions", "services", "hostPools", "regions"])
                item = copy.deepcopy(adl[which][0])
                item["operators" if "operators" in item else "name"] = chance.choice([some, NAMES])
                item |= {"operator": chance.choice(NAMES)} if which == "services" else {}
                item["name"] = chance.choice(NAMES) if chance.random() < 0.5 else item["name"]
                adl[which].append(item)
    return adl


@settings(max_examples=10 * CASES, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(SPECS))
def test_any_wiring(seed: int, spec: Object) -> None:
    plan(rewired(random.Random(seed)), spec)
