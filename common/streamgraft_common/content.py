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
    """The running driver plans its queries anew, at a batch boundary; maybe from other code."""
    RESTART = "restart"
    """The PE needs a new pod: settings of the JVM or the pod, its place in the graph, or code that
    a running process can't load."""
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True)
class Content:
    """Hashes of the parts of a PE that differ in what their change takes."""

    driver: str
    """What a pod fixes when it starts. PEs with equal ones can take over each other's warm pods."""
    place: str
    """Where the PE is in the graph, and so whose state it works on."""
    code: str
    """The code of its operators (streamgraft_common.code)."""
    plan: str
    """What its queries are made from."""
    notes: str
    """What only people read."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the content that `str()` wrote down; any other text equals no content."""
        hashes = text.split(".")
        return cls(*hashes) if len(hashes) == len(fields(cls)) else cls(text, "", "", "", "")

    def __str__(self) -> str:
        return f"{self.driver}.{self.place}.{self.code}.{self.plan}.{self.notes}"

    @property
    def queries(self) -> str:
        """What queries are made from: a driver that has rehearsed them is warm for the PE."""
        return f"{self.code}.{self.plan}"

    def pool(self, bundle_digest: str) -> str:
        """Return what pods of a warm pool must have fixed at their start to be warm for the PE."""
        return f"{self.driver}.{bundle_digest[:16]}"


def classify(old: Content, new: Content) -> Change:
    """Return what it takes to bring a PE from one content to another."""
    if (old.driver, old.place) != (new.driver, new.place):
        return Change.RESTART
    if old.queries != new.queries:
        return Change.IN_PLACE
    return Change.IDENTICAL if old == new else Change.METADATA_ONLY
