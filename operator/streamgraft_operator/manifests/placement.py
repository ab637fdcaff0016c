"""From the placement of a PE to the affinity and labels of its pod.

The mapping is that of cloud native Streams, section 6.2. The scheduler weighs anti-affinity from
both sides, so a pod that asks to be alone also keeps later ones away.
"""

from collections.abc import Mapping
from typing import Any

from streamgraft_common import names
from streamgraft_common.adl import Placement
from streamgraft_operator.kit.parsed import host_pool_spec, host_pool_status

Term = dict[str, Any]
HOSTNAME = "kubernetes.io/hostname"
NODE_LOST = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
NODE_LOST_SECONDS = 30
"""Pods leave a node that is lost after so long; Kubernetes' own default is 300."""
NAMESPACE_NAME = "kubernetes.io/metadata.name"


def labels(placement: Placement, job: str) -> dict[str, str]:
    """Return the labels by which the pods of a job find, or avoid, each other."""
    result = {f"{names.LABEL_COLOCATE}/{token}": job for token in placement.colocate}
    result |= {f"{names.LABEL_EXLOCATE}/{token}": job for token in placement.exlocate}
    if placement.host_pool:
        result[names.LABEL_HOST_POOL] = placement.host_pool
    return result


def nodes(pool: dict[str, Any]) -> list[str]:
    """Return the nodes of a HostPool, as its status says."""
    return host_pool_status(pool).nodes


def lacking(name: str, pool: dict[str, Any] | None, job: str) -> str:
    """Return what the HostPool `name` still needs before PEs of `job` may start; '' if nothing."""
    if pool is None:
        return f"the HostPool {name}"
    spec = host_pool_spec(pool)
    if spec.job not in (None, job):
        return f"a HostPool of its own: {name} belongs to the job {spec.job}"
    if not spec.selects:
        return f"hosts, tags or labels of a nodeSelector in the HostPool {name}"
    if spec.size is not None and not nodes(pool):
        return f"nodes of the HostPool {name}"
    return ""


def affinity(
    placement: Placement, pool: dict[str, Any] | None, namespace: str, job: str, pe: str
) -> dict[str, Any]:
    """Return a pod's affinity; {} if it may run anywhere.

    `pool` is the HostPool that the placement names.
    """
    together = [
        _on_node(_expression(f"{names.LABEL_COLOCATE}/{token}", "In", job))
        for token in placement.colocate
    ]
    apart = [
        _on_node(_expression(f"{names.LABEL_EXLOCATE}/{token}", "In", job))
        for token in placement.exlocate
    ]
    if placement.isolate:
        ours = _expression(names.LABEL_JOB, "In", job)
        apart.append(_on_node(ours, _expression(names.LABEL_PE, "NotIn", pe)))
    if pool and placement.host_pool and host_pool_spec(pool).exclusive:
        apart += _exclusive(placement.host_pool, namespace, job)
    result = {
        "nodeAffinity": _required({"nodeSelectorTerms": _node_terms(placement, pool)}),
        "podAffinity": _required(together),
        "podAntiAffinity": _required(apart),
    }
    return {name: value for name, value in result.items() if value}


def tolerating(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a pod's spec that leaves lost nodes soon, unless it says itself when it does."""
    own = spec.get("tolerations", [])
    said = {item.get("key") for item in own}  # None: all keys
    if None in said:
        return spec
    ours = [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": NODE_LOST_SECONDS,
        }
        for key in NODE_LOST
        if key not in said
    ]
    return {**spec, "tolerations": [*own, *ours]}


def spread(spec: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    """Return a pod's spec with which the scheduler spreads channels of a region over nodes, and
    all other pods of a job; if it can't it places them all the same.

    The user's own constraints stay alone. `labels`: of the pod.
    """
    ours = {
        "topologyKey": HOSTNAME,
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": alike(labels)},
    }
    return {"topologySpreadConstraints": [ours], **spec}


def alike(labels: Mapping[str, str]) -> dict[str, str]:
    """Return those labels of a pod that it has in common with the ones from which it is spread."""
    place = (names.LABEL_REGION, names.LABEL_STAGE) if names.LABEL_REGION in labels else ()
    return {label: labels[label] for label in (names.LABEL_JOB, *place)}


def _node_terms(placement: Placement, item: dict[str, Any] | None) -> list[Term]:
    """Return the terms of which a node has to meet one."""
    if placement.host:
        return [_named(placement.host)]
    if item is None:
        return []
    pool = host_pool_spec(item)
    if pool.size is not None:
        return [_named(node) for node in nodes(item)]
    if pool.hosts is not None:
        return [_named(host) for host in pool.hosts]
    expressions: list[Term] = [
        {"key": f"{names.LABEL_TAG}/{tag}", "operator": "Exists"} for tag in pool.tags or ()
    ]
    selector = pool.node_selector or {}
    expressions += [_expression(key, "In", value) for key, value in selector.items()]
    return [{"matchExpressions": expressions}]


def _exclusive(pool: str, namespace: str, job: str) -> list[Term]:
    """Return the terms that keep the pods of all other pools and jobs off a pool's nodes.

    Those of warm pools, too: they stay where they are when a PE adopts them.
    """
    any_job = {"key": names.LABEL_JOB, "operator": "Exists"}
    place = _expression(NAMESPACE_NAME, "NotIn", namespace)
    return [
        _on_node(any_job, _expression(names.LABEL_HOST_POOL, "NotIn", pool)),
        _on_node(any_job, _expression(names.LABEL_JOB, "NotIn", job)),
        {**_on_node(any_job), "namespaceSelector": {"matchExpressions": [place]}},
    ]


def _required(terms: Any) -> dict[str, Any]:
    empty = not terms or terms == {"nodeSelectorTerms": []}
    return {} if empty else {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _named(node: str) -> Term:
    # A field of the node, since the label with its name may differ from it.
    return {"matchFields": [_expression("metadata.name", "In", node)]}


def _on_node(*expressions: Term) -> Term:
    return {"topologyKey": HOSTNAME, "labelSelector": {"matchExpressions": list(expressions)}}


def _expression(key: str, operator: str, value: str) -> Term:
    return {"key": key, "operator": operator, "values": [value]}
