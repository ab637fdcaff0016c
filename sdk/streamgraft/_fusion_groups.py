"""Which operators Spark can run in one plan: the fusion groups of the application description.

The operator of the cluster decides what it fuses, but neither runs user code nor Spark. So the
build finds out: each operator joins the group of the operators that it reads from, as long as Spark
takes all of the group as one query. Whatever is fused then is a part of a group, and so also runs.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from streamgraft import _plan_checks as plan_checks
from streamgraft._errors import ApplicationError
from streamgraft._graph import SOURCES, Graph, OperatorNode
from streamgraft._schemas import empty_stream
from streamgraft_common.frames import told_apart

Call = Callable[[OperatorNode, list[DataFrame]], DataFrame]
"""Calls an operator's function. Raises ApplicationError."""


@dataclass
class _Group:
    """Operators that can run in one plan, and their streams as that plan has them."""

    members: list[OperatorNode] = field(default_factory=list)
    frames: dict[str, DataFrame] = field(default_factory=dict)
    leaves: dict[str, DataFrame] = field(default_factory=dict)
    """Streams that no function of the group reads; the parts of a split count as the whole."""


@dataclass(frozen=True)
class Fusion:
    """Finds the fusion groups of a graph that has been planned."""

    spark: SparkSession
    graph: Graph
    schemas: Mapping[str, StructType]
    append_only: Set[str]
    """Operators whose results would differ in output mode update."""
    watermarked: Set[str]
    """Operators that say how late records may be."""
    stateful: Set[str]
    call: Call
    _entering: dict[str, DataFrame] = field(default_factory=dict)
    """Streams as they come from Kafka: one frame each, however many read it, as in a PE."""

    def groups(self) -> dict[str, int]:
        """Return the number of each operator's group."""
        producers, group_of = self.graph.producers(), dict[str, _Group]()
        for operator in self.graph.upstream_first():
            sources = [producers[stream] for stream in operator.inputs]
            near = [group_of[item.name] for item in sources if item.region == operator.region]
            group = self._joined(operator, list({id(item): item for item in near}.values()))
            group_of.update((member.name, group) for member in group.members)
        numbers = {id(group): 0 for group in group_of.values()}
        numbers = {key: number for number, key in enumerate(numbers)}
        return {name: numbers[id(group)] for name, group in group_of.items()}

    def _joined(self, operator: OperatorNode, near: list[_Group]) -> _Group:
        """Return the first group that takes the operator: all near it, one of them, a new one."""
        candidates = [_merged(near), *near] if len(near) > 1 else near
        for candidate in candidates:
            group = self._extended(candidate, operator)
            if group and self._runs(group):
                return group
        return self._extended(_Group(), operator) or _Group([operator])

    def _extended(self, group: _Group, operator: OperatorNode) -> _Group | None:
        frames = [group.frames.get(stream, self._entered(stream)) for stream in operator.inputs]
        new, leaves = dict(group.frames), dict(group.leaves)
        if operator.kind in SOURCES:
            name = operator.outputs[0]
            new[name] = leaves[name] = self._entered(name)
        elif operator.kind == "split":
            leaves[operator.inputs[0]] = frames[0]
            new |= {part.stream: frames[0].where(part.condition) for part in operator.split}
        elif operator.kind == "function":
            try:
                result = self.call(operator, told_apart(frames))
            except ApplicationError:  # it wants streams as they come from Kafka
                return None
            for stream in operator.inputs:
                leaves.pop(stream, None)
            new[operator.name] = leaves[operator.name] = result
        return _Group([*group.members, operator], new, leaves)

    def _entered(self, stream: str) -> DataFrame:
        if stream not in self._entering:
            self._entering[stream] = empty_stream(self.spark, self.schemas[stream])
        return self._entering[stream]

    def _runs(self, group: _Group) -> bool:
        """Return whether Spark takes the group as one query, with the results of each operator."""
        if len({member.real_time for member in group.members if member.function}) > 1:
            return False
        if any(item.kind == "import" for item in group.members) and any(
            item.real_time for item in group.members
        ):
            return False  # what an import reads changes between batches
        if any(item.kafka and item.kafka.encoding for item in group.members) and any(
            item.real_time for item in group.members
        ):
            return False  # its values go through Python
        names = {member.name for member in group.members}
        if share_a_watermark(names, self.watermarked, self.stateful):
            return False
        updates = any(member.output_mode == "update" for member in group.members)
        if updates and names & self.append_only:
            return False
        leaves = [frame.select(F.lit(0).alias("leaf")) for frame in group.leaves.values()]
        whole = reduce(DataFrame.unionAll, leaves)
        return not plan_checks.unsupported(self.spark, whole, "update" if updates else "append")


def share_a_watermark(names: Set[str], watermarked: Set[str], stateful: Set[str]) -> bool:
    """Return whether in one query of operators a watermark would hold beyond the one that sets it.

    Spark has one for the whole query, the least of all: windows would wait for those of others, and
    state that knows no time would lose late rows.
    """
    timed = names & watermarked
    return bool(timed) and len(timed | (names & stateful)) > 1


def _merged(groups: list[_Group]) -> _Group:
    whole = _Group()
    for group in groups:
        whole.members += group.members
        whole.frames |= group.frames
        whole.leaves |= group.leaves
    return whole
