"""The graph as it was written down: plain values, before any check."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, Literal

from streamgraft._errors import ApplicationError
from streamgraft._location import Location
from streamgraft_common.adl import (
    Autoscaling,
    KafkaEndpoint,
    Placement,
    SplitOutput,
)
from streamgraft_common.declared_objects import HostPoolDeclaration, ServiceDeclaration
from streamgraft_common.downstream import behind
from streamgraft_common.shared_streams.declarations import ExportDeclaration, ImportDeclaration

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Kind = Literal[
    "kafka-source", "source", "function", "split", "sink", "kafka-sink", "export", "import"
]
OutputMode = Literal["append", "update"]
Delivery = Literal["exactly_once", "at_least_once"]
Malformed = Literal["dead_letter", "skip", "fail"]

SOURCES: tuple[Kind, ...] = ("kafka-source", "source", "import")
SINKS: tuple[Kind, ...] = ("kafka-sink", "sink", "export")


@dataclass(frozen=True)
class RegionNode:
    """A parallel region."""

    name: str
    key: tuple[str, ...]
    width: int
    max_width: int
    autoscaling: Autoscaling | None
    location: Location
    outer: str | None
    """The region that was open where this one was written."""
    placement: Placement = field(default_factory=Placement)


@dataclass(frozen=True)
class OperatorNode:
    """An operator, with the names of the streams that it reads and makes."""

    name: str
    kind: Kind
    location: Location
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    region: str | None = None
    function: Callable[..., Any] | None = None
    kafka: KafkaEndpoint | None = None
    split: tuple[SplitOutput, ...] = ()
    exported: ExportDeclaration | None = None
    imported: ImportDeclaration | None = None
    schema: "str | StructType | None" = None
    output_mode: OutputMode = "append"
    real_time: bool = False
    apart: bool = False
    """Behind a region: whether it stays outside."""
    delivery: Delivery = "exactly_once"
    placement: Placement = field(default_factory=Placement)
    restartable: bool = True


@dataclass(frozen=True)
class ConsistentRegionNode:
    """A consistent region, by where it starts and ends; none: at the sinks."""

    name: str
    location: Location
    start: tuple[str, ...]
    end: tuple[str, ...]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class CutFunctionNode:
    """What a sink does at a moment of each cut."""

    sink: str
    moment: Literal["prepare", "commit"]
    function: Callable[..., None]
    location: Location


@dataclass(frozen=True)
class Notice:
    """Something that is allowed but probably not meant."""

    location: Location
    text: str

    def __str__(self) -> str:
        return f"{self.location}: {self.text}"


@dataclass
class Graph:
    """Everything that an application has declared, in the order in which it was written."""

    name: str
    location: Location
    operators: list[OperatorNode] = field(default_factory=list)
    regions: list[RegionNode] = field(default_factory=list)
    consistent_regions: list[ConsistentRegionNode] = field(default_factory=list)
    cut_functions: list[CutFunctionNode] = field(default_factory=list)
    services: list[tuple[Location, ServiceDeclaration]] = field(default_factory=list)
    host_pools: list[tuple[Location, HostPoolDeclaration]] = field(default_factory=list)
    errors: list[ApplicationError] = field(default_factory=list)
    """What was found wrong while it was written down."""

    def producers(self) -> dict[str, OperatorNode]:
        """Return the operator that makes each stream (the first, if there are several)."""
        found: dict[str, OperatorNode] = {}
        for operator in self.operators:
            for stream in operator.outputs:
                found.setdefault(stream, operator)
        return found

    def consumed(self) -> set[str]:
        """Return the streams that some operator reads."""
        return {stream for operator in self.operators for stream in operator.inputs}

    def leads_to_a_sink(self, operator: str) -> bool:
        """Return whether an operator is a sink, or one is behind it: others run nowhere."""
        sinks = {item.name for item in self.operators if item.kind in SINKS}
        return not sinks.isdisjoint({operator} | behind(self.operators, {operator}))

    def entering(self, region: str) -> Iterator[tuple[str, OperatorNode]]:
        """Yield each stream that enters the region with the operator there that reads it."""
        producers = self.producers()
        for operator in self.operators:
            if operator.region == region:
                for stream in operator.inputs:
                    if stream in producers and producers[stream].region != region:
                        yield stream, operator

    def members(self, region: ConsistentRegionNode) -> list[str]:
        """Return the operators of a consistent region: from its start to its end, or the sinks."""
        found, ends = set(region.start), set(region.end)
        streams = {item.name: item.outputs for item in self.operators}
        waiting = [name for name in region.start if name not in ends]
        while waiting:
            outputs = streams.get(waiting.pop(), ())
            readers = {
                item.name for item in self.operators if not set(outputs).isdisjoint(item.inputs)
            }
            waiting += sorted(readers - found - ends)
            found |= readers
        return [item.name for item in self.operators if item.name in found]

    def all_commits(self, region: ConsistentRegionNode) -> bool:
        """Return whether all that leaves a consistent region leaves it by sinks that commit.

        Whole PEs go back, so what may be fused with the region's operators counts as well.
        """
        members = set(self.members(region))
        committing = {item.sink for item in self.cut_functions if item.moment == "commit"}
        sinks = {item.name for item in self._connected(members) if not item.outputs}
        return sinks <= members & committing

    def _connected(self, names: set[str]) -> list[OperatorNode]:
        """Return the operators that streams connect with some, in whatever direction."""
        found = [item for item in self.operators if item.name in names]
        streams = {name for item in found for name in (*item.inputs, *item.outputs)}
        near = [item for item in self.operators if streams & {*item.inputs, *item.outputs}]
        return near if len(near) == len(found) else self._connected({item.name for item in near})

    def upstream_first(self) -> list[OperatorNode]:
        """Return the operators so that each follows those whose streams it reads.

        Raises graphlib.CycleError.
        """
        producers = self.producers()
        by_name = {operator.name: operator for operator in self.operators}
        sorter = TopologicalSorter(
            {
                operator.name: [
                    producers[stream].name for stream in operator.inputs if stream in producers
                ]
                for operator in self.operators
            }
        )
        return [by_name[name] for name in sorter.static_order()]
