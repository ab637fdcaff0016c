"""PEs whose pods are free: what the region knows, and the pod conductor acts upon."""

from streamgraft_common.kube.client import Object


class Freed:
    """PEs that were deleted, or are about to be, with nothing left in their pods; by uid.

    Kept in memory only: if the operator ends, such pods are ended as others are.
    """

    def __init__(self) -> None:
        self._elements: dict[str, Object] = {}

    def add(self, item: Object) -> None:
        """Note a PE before it is deleted."""
        self._elements[item["metadata"]["uid"]] = item

    def discard(self, item: Object) -> None:
        """Forget a PE: it was not deleted."""
        self._elements.pop(item["metadata"]["uid"], None)

    def take(self, uid: str) -> Object | None:
        """Return the PE of this uid, and forget it; None if it is not known as free."""
        return self._elements.pop(uid, None)
