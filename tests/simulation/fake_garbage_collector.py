"""The garbage collector of the simulated control plane: owner references, both policies."""

from collections.abc import Iterator

from tests.simulation.fake_api_server import FOREGROUND, FakeApiServer
from tests.simulation.fake_resources import FakeResource

from streamgraft_common.kube import NotFound
from streamgraft_common.kube.client import Object


class FakeGarbageCollector:
    """Deletes what has lost all its owners, and lets owners go that wait for their dependents."""

    def __init__(self, server: FakeApiServer) -> None:
        self._server = server

    def sweep(self) -> bool:
        """Look at everything once; return whether something was done."""
        uids = {item["metadata"]["uid"]: item for _, item in self._items()}
        blocked: set[str] = set()
        doomed: list[tuple[FakeResource, Object]] = []
        for resource, item in self._items():
            references = item["metadata"].get("ownerReferences") or ()
            owners = [uids[ref["uid"]] for ref in references if ref["uid"] in uids]
            if references and all(_waits(owner) for owner in owners):
                if "deletionTimestamp" not in item["metadata"]:
                    doomed.append((resource, item))
                for reference in references:
                    if reference.get("blockOwnerDeletion"):
                        blocked.add(reference["uid"])
        for resource, item in doomed:
            self._delete(resource, item)
        freed = [
            (resource, item)
            for resource, item in self._items()
            if _waits(item) and item["metadata"]["uid"] not in blocked
        ]
        for resource, item in freed:
            self._free(resource, item)
        return bool(doomed or freed)

    def _items(self) -> Iterator[tuple[FakeResource, Object]]:
        for resource in self._server.storage.resources():
            for item in list(self._server.storage.items(resource).values()):
                yield resource, item

    def _delete(self, resource: FakeResource, item: Object) -> None:
        options = {"propagationPolicy": "Background"}
        try:
            self._server.request("DELETE", _path(resource, item), options, {}, "")
        except NotFound:
            return

    def _free(self, resource: FakeResource, item: Object) -> None:
        rest = [name for name in item["metadata"]["finalizers"] if name != FOREGROUND]
        patch = {"metadata": {"finalizers": rest}}
        self._server.request("PATCH", _path(resource, item), patch, {}, "")


def _waits(item: Object) -> bool:
    return FOREGROUND in (item["metadata"].get("finalizers") or ())


def _path(resource: FakeResource, item: Object) -> str:
    metadata = item["metadata"]
    return resource.path(metadata["namespace"], metadata["name"])
