"""HostPool: a set of nodes on which operators of a job may be placed."""

from typing import Annotated

from pydantic import Field

from streamgraft_common.resources.base import (
    CelRule,
    Condition,
    CustomKind,
    JobName,
    Model,
    PrinterColumn,
)

Tag = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=63)]


class HostPoolSpec(Model):
    """Which nodes belong to the pool: those named, or those that carry all tags and labels."""

    job: JobName | None = None
    """Job whose PEs alone may use the pool; those of others wait. Default: all may."""
    hosts: list[str] | None = None
    """Names of nodes."""
    tags: list[Tag] | None = None
    """Nodes with the label `tag.streamgraft.io/<tag>` for each of these."""
    node_selector: dict[str, str] | None = None
    """Nodes with these labels."""
    size: Annotated[int, Field(ge=1)] | None = None
    """Nodes of the pool that PEs use at most. Default: all."""
    exclusive: bool = False
    """Whether PEs of other pools and jobs stay off the nodes that this pool's PEs run on."""

    @property
    def selects(self) -> bool:
        """Whether it says which nodes belong to it; it may be older than the rule that it does."""
        return bool(self.hosts or self.tags or self.node_selector)


class HostPoolStatus(Model):
    """What the pool amounts to."""

    nodes: list[str] = []
    """Names of the nodes that belong to it now."""
    observed_generation: int = 0
    """metadata.generation of the spec that this status is about."""
    conditions: list[Condition] = []
    """Ready: at least one node belongs to it."""


HOST_POOL = CustomKind(
    kind="HostPool",
    plural="hostpools",
    short_names=["hp"],
    spec=HostPoolSpec,
    status=HostPoolStatus,
    rules=[
        CelRule(
            rule="has(self.hosts) != (has(self.tags) || has(self.nodeSelector))",
            message="a host pool needs either hosts, or tags, nodeSelector or both",
        ),
        CelRule(
            rule=" || ".join(
                f"has(self.{field}) && size(self.{field}) > 0"
                for field in ("hosts", "tags", "nodeSelector")
            ),
            message="hosts, tags or nodeSelector must name something",
        ),
    ],
    columns=[
        PrinterColumn(name="Job", type="string", json_path=".spec.job"),
        PrinterColumn(name="Size", type="integer", json_path=".spec.size"),
        PrinterColumn(name="Exclusive", type="boolean", json_path=".spec.exclusive"),
        PrinterColumn(name="Nodes", type="string", json_path=".status.nodes", priority=1),
        PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp"),
    ],
)
