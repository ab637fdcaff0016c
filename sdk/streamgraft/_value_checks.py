"""Checks of single values that an application's calls only note: whether they are of their type.

Without, the description's model would refuse them, which knows no line of the application.
"""

from collections.abc import Iterator
from typing import get_args

from streamgraft._errors import ApplicationError, InvalidArgument, SchemaMismatch
from streamgraft._graph import Delivery, Graph, OperatorNode, OutputMode, RegionNode
from streamgraft_common.adl import Placement


def value_errors(graph: Graph) -> Iterator[ApplicationError]:
    """Yield the values that are of another type."""
    for region in graph.regions:
        yield from _placement_errors(region)
    for operator in graph.operators:
        yield from _placement_errors(operator)
        yield from _choice_errors(operator)
        yield from _schema_errors(operator)


def _placement_errors(node: RegionNode | OperatorNode) -> Iterator[ApplicationError]:
    if not isinstance(node.placement, Placement):
        yield InvalidArgument(
            node.location, f"placement is {node.placement!r}", "use sg.Placement(...)"
        )


def _choice_errors(operator: OperatorNode) -> Iterator[ApplicationError]:
    for name in ("real_time", "restartable", "apart"):
        value = getattr(operator, name)
        if not isinstance(value, bool):
            yield InvalidArgument(
                operator.location, f"{name} is {value!r}", "use True, or leave it out"
            )
    # Without real time it is told that there is none.
    delivery = operator.delivery if operator.real_time else "exactly_once"
    for what, said, known in (
        ("output_mode", operator.output_mode, get_args(OutputMode)),
        ("delivery", delivery, get_args(Delivery)),
    ):
        if said not in known:
            yield InvalidArgument(
                operator.location, f"{what} is {said!r}", f"use one of {', '.join(known)}"
            )


def _schema_errors(operator: OperatorNode) -> Iterator[ApplicationError]:
    if isinstance(operator.schema, str | None):
        return
    from pyspark.sql.types import StructType  # whoever has one has imported it

    if not isinstance(operator.schema, StructType):
        yield SchemaMismatch(
            operator.location,
            f"the schema of {operator.name!r} is {operator.schema!r}",
            "write it like a table's columns: 'carrier string, delay double', or use a StructType",
        )
