"""Placement: from operators to PEs, and from a PE to what the scheduler reads."""

from typing import Any

import pytest
from pydantic import ValidationError

from streamgraft_common.adl import Operator, Placement, Region
from streamgraft_common.resources import HostPoolSpec
from streamgraft_operator.graph.placement import combined, placement_of
from streamgraft_operator.host_pool.step import NodeView, members
from streamgraft_operator.manifests.placement import (
    HOSTNAME,
    affinity,
    labels,
    lacking,
    spread,
    tolerating,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def affinity_of(placement: Placement, pool: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the affinity of the pod of PE job-3."""
    return affinity(placement, pool, "ns", "job", "job-3")


def node_terms(placement: Placement, pool: dict[str, Any] | None = None) -> Any:
    return affinity_of(placement, pool)["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


def named(node: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}


def test_fused_operators_take_what_all_of_them_ask_for() -> None:
    first = Placement(host_pool="gpu", colocate=["a"])
    second = Placement(colocate=["b", "a"], exlocate=["x"], isolate=True)
    assert combined([first, second, Placement()]) == Placement(
        host_pool="gpu", colocate=["a", "b"], exlocate=["x"], isolate=True
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Placement(host="a"), Placement(host="b")),
        (Placement(host="a"), Placement(host_pool="gpu")),
        (Placement(host_pool="tpu"), Placement(host_pool="gpu")),
        (Placement(exlocate=["x", "y"]), Placement(exlocate=["y"])),
    ],
)
def test_placements_that_exclude_each_other(first: Placement, second: Placement) -> None:
    assert combined([first, second]) is None


def test_region_places_what_its_operators_leave_open() -> None:
    region = Region(
        name="r", key=["k"], max_width=2, placement=Placement(host="a", exlocate=["spread"])
    )
    plain = Operator(name="one", kind="function")
    pooled = Operator(name="two", kind="function", placement=Placement(host_pool="gpu"))
    assert placement_of([plain, plain], region) == Placement(host="a", exlocate=["spread"])
    assert placement_of([pooled], region) == Placement(host_pool="gpu", exlocate=["spread"])
    assert placement_of([pooled], None) == pooled.placement


def host_pool(**spec: Any) -> dict[str, Any]:
    """Return the HostPool `gpu`."""
    return {"metadata": {"namespace": "ns", "name": "gpu"}, "spec": spec}


def test_host_or_pool() -> None:
    with pytest.raises(ValidationError, match="not both"):
        Placement(host="a", host_pool="gpu")


def test_nothing_asked_no_affinity() -> None:
    assert affinity_of(Placement()) == {}
    assert labels(Placement(), "job") == {}


def test_node_is_chosen_by_name_or_by_what_the_pool_says() -> None:
    pool = Placement(host_pool="gpu")
    assert node_terms(Placement(host="a")) == [named("a")]
    assert node_terms(pool, host_pool(hosts=["a", "b"])) == [named("a"), named("b")]
    assert node_terms(pool, host_pool(tags=["gpu"], nodeSelector={"zone": "z"})) == [
        {
            "matchExpressions": [
                {"key": "tag.streamgraft.io/gpu", "operator": "Exists"},
                {"key": "zone", "operator": "In", "values": ["z"]},
            ]
        }
    ]
    sized = {**host_pool(tags=["gpu"], size=1), "status": {"nodes": ["b"]}}
    assert node_terms(pool, sized) == [named("b")]


def test_tokens_are_labels_and_terms_of_the_job() -> None:
    placement = Placement(colocate=["near"], exlocate=["far"])
    assert labels(placement, "job") == {
        "colocate.streamgraft.io/near": "job",
        "exlocate.streamgraft.io/far": "job",
    }
    for kind, key in (("podAffinity", "colocate"), ("podAntiAffinity", "exlocate")):
        (term,) = affinity_of(placement)[kind][REQUIRED]
        token = "near" if key == "colocate" else "far"
        assert term == {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {
                "matchExpressions": [
                    {
                        "key": f"{key}.streamgraft.io/{token}",
                        "operator": "In",
                        "values": ["job"],
                    }
                ]
            },
        }


def test_isolated_pe_avoids_all_others_of_its_job() -> None:
    (term,) = affinity_of(Placement(isolate=True))["podAntiAffinity"][REQUIRED]
    assert term["labelSelector"]["matchExpressions"] == [
        {"key": "streamgraft.io/job", "operator": "In", "values": ["job"]},
        {"key": "streamgraft.io/pe", "operator": "NotIn", "values": ["job-3"]},
    ]


def test_exclusive_pool_avoids_other_pools_jobs_and_namespaces() -> None:
    pool = host_pool(hosts=["a"], exclusive=True)
    terms = affinity_of(Placement(host_pool="gpu"), pool)["podAntiAffinity"][REQUIRED]
    others, other_jobs, elsewhere = (term["labelSelector"]["matchExpressions"] for term in terms)
    assert others[1] == {"key": "streamgraft.io/host-pool", "operator": "NotIn", "values": ["gpu"]}
    assert other_jobs[1] == {"key": "streamgraft.io/job", "operator": "NotIn", "values": ["job"]}
    assert elsewhere == [{"key": "streamgraft.io/job", "operator": "Exists"}]
    assert terms[2]["namespaceSelector"]["matchExpressions"][0]["values"] == ["ns"]


def matches(term: dict[str, Any], labels: dict[str, str]) -> bool:
    """Return whether an affinity's term is about a pod with these labels."""
    return all(
        expression["key"] in labels
        if expression["operator"] == "Exists"
        else labels.get(expression["key"]) not in expression["values"]
        for expression in term["labelSelector"]["matchExpressions"]
    )


def test_exclusive_pool_avoids_warm_pods_of_others() -> None:
    """A PE adopts one where it is."""
    pool = host_pool(hosts=["a"], exclusive=True)
    terms = affinity_of(Placement(host_pool="gpu"), pool)["podAntiAffinity"][REQUIRED]
    theirs = {"streamgraft.io/job": "other", "streamgraft.io/pool": "warm"}
    assert [matches(term, theirs) for term in terms] == [True, True, True]
    ours = {"streamgraft.io/job": "job", "streamgraft.io/host-pool": "gpu"}
    assert [matches(term, ours) for term in terms[:2]] == [False, False]
    assert not any(matches(term, {"app": "web"}) for term in terms)


def nodes_of(labels: dict[str, dict[str, str]], closed: str = "") -> dict[str, NodeView]:
    """Return nodes with these labels; those with a letter in `closed` take no pods."""
    return {name: NodeView(found, name not in closed) for name, found in labels.items()}


def test_members_of_a_pool() -> None:
    tag = {"tag.streamgraft.io/gpu": ""}
    nodes = nodes_of({"c": tag, "a": {**tag, "zone": "z"}, "b": {"zone": "z"}, "d": tag})
    assert members(HostPoolSpec(hosts=["b", "x"]), nodes, []) == ["b"]
    assert members(HostPoolSpec(tags=["gpu"]), nodes, []) == ["a", "c", "d"]
    assert members(HostPoolSpec(tags=["gpu"], node_selector={"zone": "z"}), nodes, []) == ["a"]


def test_sized_pool_keeps_its_nodes() -> None:
    tag = {"tag.streamgraft.io/gpu": ""}
    pool = HostPoolSpec(tags=["gpu"], size=2)
    assert members(pool, nodes_of({"b": tag, "c": tag, "d": tag}), []) == ["b", "c"]
    assert members(pool, nodes_of({"a": tag, "c": tag, "d": tag}), ["c", "d"]) == ["c", "d"]
    assert members(pool, nodes_of({"a": tag, "d": tag}), ["c", "d"]) == ["a", "d"]


def test_sized_pool_passes_over_nodes_that_take_no_pods() -> None:
    """As long as others are free; one that comes back is not taken back for that."""
    tag = {"tag.streamgraft.io/gpu": ""}
    pool, labels = HostPoolSpec(tags=["gpu"], size=2), {"a": tag, "b": tag, "c": tag}
    assert members(pool, nodes_of(labels, closed="a"), ["a", "b"]) == ["b", "c"]
    assert members(pool, nodes_of(labels), ["b", "c"]) == ["b", "c"]
    assert members(pool, nodes_of(labels, closed="bc"), ["b", "c"]) == ["a", "b"]
    assert members(pool, nodes_of(labels, closed="abc"), ["b", "c"]) == ["b", "c"]
    assert members(pool, nodes_of(labels, closed="a"), []) == ["b", "c"]


def test_pool_without_a_size_has_all_nodes() -> None:
    """The scheduler knows which of them take pods."""
    nodes = nodes_of({"a": {}, "b": {}}, closed="a")
    assert members(HostPoolSpec(hosts=["a", "b"]), nodes, []) == ["a", "b"]


def pool_of(number: int, spec: dict[str, Any], nodes: list[str]) -> dict[str, Any]:
    metadata = {"namespace": "ns", "name": f"pool-{number}"}
    return {"metadata": metadata, "spec": spec, "status": {"nodes": nodes}}


def test_pool_of_a_job_is_for_its_pes_only() -> None:
    pool = pool_of(1, {"hosts": ["n1"], "job": "mine"}, ["n1"])
    assert lacking("fast", pool, "mine") == ""
    assert "fast belongs to the job mine" in lacking("fast", pool, "other")
    assert lacking("fast", pool_of(2, {"hosts": ["n1"]}, ["n1"]), "other") == ""


def test_pes_wait_for_a_missing_pool_and_for_nodes_of_a_sized_one() -> None:
    assert lacking("fast", None, "mine") == "the HostPool fast"
    sized = pool_of(3, {"hosts": ["n1"], "size": 1}, [])
    assert lacking("fast", sized, "mine") == "nodes of the HostPool fast"


@pytest.mark.parametrize("spec", [{"hosts": []}, {"tags": []}, {"nodeSelector": {}}])
def test_a_pool_that_names_nothing_has_no_nodes(spec: dict[str, Any]) -> None:
    """Such pools may be stored: their PEs wait, and the pool is not ready."""
    read = HostPoolSpec.model_validate(spec)
    assert members(read, nodes_of({"a": {}}), []) == []
    pool = {"metadata": {"namespace": "ns", "name": str(spec)}, "spec": spec}
    wanted = "hosts, tags or labels of a nodeSelector in the HostPool fast"
    assert lacking("fast", pool, "mine") == wanted


@pytest.mark.parametrize(
    ("own", "seconds"),
    [
        ([], {"unreachable": 30, "not-ready": 30}),
        (
            [{"key": "node.kubernetes.io/unreachable", "tolerationSeconds": 5}],
            {"unreachable": 5, "not-ready": 30},
        ),
        ([{"operator": "Exists"}], {}),
    ],
    ids=["none", "one", "all"],
)
def test_pods_leave_lost_nodes_soon(own: list[Any], seconds: dict[str, int]) -> None:
    """What the template says wins."""
    found = tolerating({"tolerations": own})["tolerations"]
    keyed = [item for item in found if "key" in item]
    assert {item["key"].rpartition("/")[2]: item["tolerationSeconds"] for item in keyed} == seconds


def test_channels_are_spread_and_so_are_the_other_pods_of_a_job() -> None:
    """As far as the scheduler can: a pod that finds no such node is placed all the same."""
    known = {"streamgraft.io/job": "j", "streamgraft.io/pe": "j-0"}
    (job,) = spread({}, known)["topologySpreadConstraints"]
    assert job["labelSelector"] == {"matchLabels": {"streamgraft.io/job": "j"}}
    assert (job["topologyKey"], job["whenUnsatisfiable"]) == (HOSTNAME, "ScheduleAnyway")
    stage = {"streamgraft.io/region": "r", "streamgraft.io/stage": "1"}
    (region,) = spread({}, known | stage)["topologySpreadConstraints"]
    assert region["labelSelector"] == {"matchLabels": {"streamgraft.io/job": "j", **stage}}


def test_constraints_of_the_user_stay_alone() -> None:
    own = {"topologySpreadConstraints": [{"topologyKey": "zone"}]}
    assert spread(own, {"streamgraft.io/job": "j"}) == own
