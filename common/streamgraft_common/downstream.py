"""Which operators are behind others in a graph. Pure."""

from collections.abc import Iterable, Sequence, Set
from typing import Protocol


class Node(Protocol):
    """An operator, with the names of the streams that it reads and makes."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def inputs(self) -> Sequence[str]:
        """Streams that it reads."""

    @property
    def outputs(self) -> Sequence[str]:
        """Streams that it makes."""


def behind(operators: Iterable[Node], first: Set[str]) -> set[str]:
    """Return the operators that read, over however many others, what some operators make."""
    nodes = list(operators)
    streams = {stream for node in nodes if node.name in first for stream in node.outputs}
    found: set[str] = set()
    while more := {
        node.name for node in nodes if node.name not in found and streams & {*node.inputs}
    }:
        found |= more
        streams |= {stream for node in nodes if node.name in more for stream in node.outputs}
    return found
