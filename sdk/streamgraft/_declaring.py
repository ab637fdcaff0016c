"""What all calls of the application language do: note a node of the graph, or what is wrong."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import ValidationError

from streamgraft._errors import InvalidArgument
from streamgraft._graph import Graph, OperatorNode
from streamgraft._location import Location, caller
from streamgraft._streams import Stream
from streamgraft._values import refused
from streamgraft_common.adl import ConsistentRegion, KafkaEndpoint, Placement
from streamgraft_common.declared_objects import HostPoolDeclaration, ServiceDeclaration
from streamgraft_common.shared_streams.declarations import ExportDeclaration, ImportDeclaration

Declared = TypeVar(
    "Declared",
    KafkaEndpoint,
    ExportDeclaration,
    ImportDeclaration,
    ServiceDeclaration,
    HostPoolDeclaration,
    ConsistentRegion,
)


class Declaring:
    """A graph that is written down, and the region that is open."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._region: str | None = None

    @contextmanager
    def _opened(self, region: str) -> Iterator[None]:
        outer, self._region = self._region, region
        try:
            yield
        finally:
            self._region = outer

    def _add(
        self,
        name: str,
        kind: Any,
        location: Location | None = None,
        placement: Placement | None = None,
        **fields: Any,
    ) -> Stream:
        node = OperatorNode(
            name,
            kind,
            location or caller(),
            region=self._region,
            placement=placement or Placement(),
            **fields,
        )
        self.graph.operators.append(node)
        return Stream(name, node.function)

    def _operator_name(self, of: Stream | str | Callable[..., Any]) -> str:
        """Return the name of an operator, given by its stream, its function or its name."""
        if isinstance(of, Stream):
            return of.name
        if isinstance(of, str):
            return of
        named = [item.name for item in self.graph.operators if item.function == of]
        if len(named) > 1:
            self._reject(
                f"{named[0]!r} is not the only operator with this function",
                f"name one of {', '.join(named)}",
            )
        return named[0] if named else getattr(of, "__name__", "")

    def _endpoint(self, **fields: Any) -> KafkaEndpoint | None:
        return self._declared(KafkaEndpoint, **fields)

    def _declared(self, model: type[Declared], **fields: Any) -> Declared | None:
        try:
            return model(**fields)
        except ValidationError as error:
            for problem, remedy in refused(error):
                self._reject(problem, remedy)
            return None

    def _reject(self, problem: str, remedy: str) -> None:
        self.graph.errors.append(InvalidArgument(caller(), problem, remedy))
