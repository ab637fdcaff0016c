"""How much CPU a cluster has free, and a job uses: what sizing by threads alone can't know.

The instance operator's design ("Application sizing and resource control") wants the measured use of
the whole cluster beside threads and limits; `metrics.k8s.io` has it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from streamgraft.cli._cluster import Cluster
from streamgraft.cli._installation import tried
from streamgraft_common import names
from streamgraft_common.kinds import NODE
from streamgraft_common.kube.client import Object
from streamgraft_common.quantities import parse

_METRICS = "/apis/metrics.k8s.io/v1beta1"


@dataclass(frozen=True)
class CpuUse:
    """Measured within the last minute or so. All in CPUs."""

    nodes: float
    """What the nodes that take pods have for them; never more than their machines."""
    free: float
    """What of it nobody uses."""
    job: float | None
    """What the pods of the job use; None: it has none that were measured."""

    def note(self, threads: int) -> str:
        """Return a line for people; `threads`: those of the application that are always busy."""
        line = f"Measured: {self.free:.1f} of the nodes' {self.nodes:g} CPUs are free"
        if self.job is not None:
            return f"{line}; the job uses {self.job:.1f}"
        if threads > self.free:
            line += f", fewer than the {threads} that its threads can keep busy"
        return line


async def measured(cluster: Cluster, job: str) -> CpuUse | None:
    """Return what `metrics.k8s.io` says; None if it is not there, or not for us to see."""
    nodes = await tried(cluster, NODE.path())
    used = await tried(cluster, f"{_METRICS}/nodes")
    if nodes is None or used is None:
        return None
    pods = f"{_METRICS}/namespaces/{cluster.namespace}/pods"
    found = await tried(cluster, pods, labelSelector=f"{names.LABEL_JOB}={job}")
    return cpu_use(nodes["items"], used["items"], found["items"] if found else ())


def cpu_use(
    nodes: Iterable[Object], node_metrics: Iterable[Object], pod_metrics: Iterable[Object]
) -> CpuUse | None:
    """Return the CPUs of nodes that take pods and were measured; None if there are none. Pure."""
    used = {item["metadata"]["name"]: parse(item["usage"]["cpu"]) for item in node_metrics}
    there = {
        item["metadata"]["name"]: min(
            parse(item["status"][kind]["cpu"]) for kind in ("capacity", "allocatable")
        )
        for item in nodes
        if not item["spec"].get("unschedulable") and item["metadata"]["name"] in used
    }
    if not there:
        return None
    free = sum(max(cpus - used[name], Fraction(0)) for name, cpus in there.items())
    pods = [
        parse(container["usage"]["cpu"]) for item in pod_metrics for container in item["containers"]
    ]
    return CpuUse(float(sum(there.values())), float(free), float(sum(pods)) if pods else None)
