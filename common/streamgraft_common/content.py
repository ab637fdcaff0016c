"""What a PE is made of, in a form that fits into an annotation, and what a change of it takes.

Both sides of an in-place change compare it: the operator, which decides whether a PE needs a new
pod, and the pod, which decides whether it has to plan its queries anew.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Self


class Change(StrEnum):
    """What a change of a PE takes, from nothing to a new pod."""

    IDENTICAL = "identical"
    METADATA_ONLY = "metadata only"
    """Only what people read: the resources are written, the driver has nothing to do."""
    IN_PLACE = "in place"
    """The running driver plans its queries anew, at a batch boundary."""
    RESTART = "restart"
    """The PE needs a new pod: code, settings of the JVM or the pod, or its place in the graph."""
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True)
class Content:
    """Hashes of the parts of a PE that differ in what their change takes."""

    driver: str
    """What a pod fixes when it starts. PEs with equal ones can take over each other's warm pods."""
    place: str
    """Where the PE is in the graph, and so whose state it works on."""
    plan: str
    """What its queries are made from."""
    notes: str
    """What only people read."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the content that `str()` wrote down; any other text equals no content."""
        hashes = text.split(".")
        return cls(*hashes) if len(hashes) == len(fields(cls)) else cls(text, "", "", "")

    def __str__(self) -> str:
        return f"{self.driver}.{self.place}.{self.plan}.{self.notes}"


def classify(old: Content, new: Content) -> Change:
    """Return what it takes to bring a PE from one content to another."""
    if (old.driver, old.place) != (new.driver, new.place):
        return Change.RESTART
    if old.plan != new.plan:
        return Change.IN_PLACE
    return Change.IDENTICAL if old == new else Change.METADATA_ONLY
