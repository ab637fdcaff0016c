"""A Kubernetes API server in memory: what the operator relies on of the real one, and no more.

Synchronous and without time of its own; `fake_kube_client` adds latency and failures, `fake_nodes`
and `fake_garbage_collector` play the other parts of a control plane. `test_api_server_contract.py`
holds it against the real API server.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any

from tests.simulation.fake_patches import FieldPath, fields_of, merged, without
from tests.simulation.fake_resources import FakeResource, Place, place_of, selector_of
from tests.simulation.fake_storage import FakeStorage

from streamgraft_common.kube import Conflict, Invalid, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.errors import ApiError
from streamgraft_common.timestamps import to_rfc3339

FOREGROUND = "foregroundDeletion"
_SET_BY_THE_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "generation")


class FakeApiServer:
    """Answers requests. `now` returns Unix seconds."""

    def __init__(self, now: Callable[[], float], chance: random.Random) -> None:
        self._now = now
        self._chance = chance
        self.storage = FakeStorage()
        self.scale_to_zero = True
        """Whether it takes HorizontalPodAutoscalers with minReplicas 0, by its feature gate."""
        self.tolerances = True
        """Whether it keeps the tolerances of HorizontalPodAutoscalers, by its feature gate."""
        self._applied: dict[tuple[str, str], frozenset[FieldPath]] = {}

    # Requests, as the client sends them.

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str],
        content_type: str,
    ) -> Object:
        """Answer a request, or raise what the client would."""
        place = place_of(path)
        if method == "GET":
            return self.get(place) if place.name else self.list(place, query)
        if method == "DELETE":
            options = body or {}
            if place.name:
                return self._delete(place, options)
            return self._delete_collection(place, options, query)
        assert body is not None, f"{method} without a body"
        if method == "POST":
            bind = place.subresource == "binding"
            return self._bind(place, body) if bind else self.create(place, body)
        if method == "PUT":
            return self._update(place, lambda _: dict(body), whole=True)
        if "apply-patch" in content_type:
            return self._apply(place, body, query["fieldManager"])
        return self._update(place, lambda old: merged(old, body))

    def get(self, place: Place) -> Object:
        """Return an object."""
        item = self.storage.items(place.resource).get((place.namespace, place.name))
        if item is None:
            what = f'{place.resource.plural} "{place.name}" not found'
            raise NotFound(404, "NotFound", what)
        return item

    def list(self, place: Place, query: Mapping[str, str]) -> Object:
        """Return a list; like the real one, lists of built-in kinds leave out the items' kind."""
        resource = place.resource
        selector = selector_of(query)
        found = [
            item
            for key, item in sorted(self.storage.items(resource).items())
            if place.namespace in ("", key[0]) and (selector is None or selector(item))
        ]
        if not resource.custom:
            found = [_without_kind(item) for item in found]
        return {
            "apiVersion": resource.api_version,
            "kind": f"{resource.kind}List",
            "metadata": {"resourceVersion": str(self.storage.version)},
            "items": found,
        }

    # Writes.

    def create(self, place: Place, body: Mapping[str, Any]) -> Object:
        """Create an object in a collection."""
        metadata = {**body.get("metadata", {})}
        for field in (*_SET_BY_THE_SERVER, "resourceVersion"):
            metadata.pop(field, None)
        name = metadata.get("name") or metadata.get("generateName", "") + self._suffix()
        key = place.namespace, name
        resource = place.resource
        if key in self.storage.items(resource):
            raise Conflict(409, "AlreadyExists", f'{resource.plural} "{name}" already exists')
        self._refuse_zero(body)
        body = self._known(body)
        metadata |= {"name": name, "namespace": place.namespace, "uid": self._uid()}
        metadata["creationTimestamp"] = self._timestamp()
        if resource.custom:
            metadata["generation"] = 1
        item = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        if resource.has_status:
            item.pop("status", None)
        if resource.plural == "pods":
            item["status"] = {"phase": "Pending"}
        return self.storage.store(resource, key, {**item, "metadata": metadata})

    def _update(
        self, place: Place, change: Callable[[Object], Object], *, whole: bool = False
    ) -> Object:
        old = self.get(place)
        wanted = change(old)
        metadata = wanted.get("metadata", {})
        version = metadata.get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict", f"{place.name}: the object has been modified")
        if metadata.get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            raise Conflict(409, "Conflict", f"{place.name}: precondition failed: UID")
        if whole and not version and place.resource.custom:
            raise Invalid(422, "Invalid", "metadata.resourceVersion: must be specified")
        new = self._known(_combined(place, old, wanted))
        if new == old:
            return old
        self._refuse_zero(new)
        self._refuse_new_finalizers(old, new)
        if place.resource.custom and _declared(new) != _declared(old):
            generation = old["metadata"]["generation"] + 1
            new["metadata"] = {**new["metadata"], "generation": generation}
        key = place.namespace, place.name
        if _is_over(new["metadata"]):
            return self.storage.remove(place.resource, key, new)
        return self.storage.store(place.resource, key, new)

    def _apply(self, place: Place, body: Mapping[str, Any], manager: str) -> Object:
        key = place.namespace, place.name
        fields = fields_of({name: part for name, part in body.items() if name != "apiVersion"})
        if key not in self.storage.items(place.resource):
            named = {**body, "metadata": {**body.get("metadata", {}), "name": place.name}}
            item = self.create(place, named)
            self._applied[item["metadata"]["uid"], manager] = fields
            return item
        uid = self.storage.items(place.resource)[key]["metadata"]["uid"]
        dropped = self._applied.get((uid, manager), frozenset()) - fields
        self._applied[uid, manager] = fields

        def change(old: Object) -> Object:
            for path in dropped:
                old = without(old, path)
            result: Object = merged(old, body)
            return result

        return self._update(place, change)

    def _bind(self, place: Place, body: Mapping[str, Any]) -> Object:
        node = body["target"]["name"]

        def change(old: Object) -> Object:
            if old["spec"].get("nodeName"):
                raise Conflict(409, "Conflict", f"pod {place.name} is already assigned to a node")
            bound: Object = merged(old, {"spec": {"nodeName": node}})
            return bound

        self._update(Place(place.resource, place.namespace, place.name, ""), change)
        return {"kind": "Status", "status": "Success"}

    def _delete_collection(
        self, place: Place, options: Mapping[str, Any], query: Mapping[str, str]
    ) -> Object:
        listing = self.list(place, query)
        for item in listing["items"]:
            name, namespace = item["metadata"]["name"], item["metadata"]["namespace"]
            self._delete(Place(place.resource, namespace, name, ""), options)
        return listing

    def _delete(self, place: Place, options: Mapping[str, Any]) -> Object:
        old = self.get(place)
        metadata = old["metadata"]
        for field, wanted in options.get("preconditions", {}).items():
            if metadata[field] != wanted:
                raise Conflict(409, "Conflict", f"precondition failed: {field} {wanted}")
        key = place.namespace, place.name
        finalizers = [*metadata.get("finalizers", ())]
        if options.get("propagationPolicy") == "Foreground" and FOREGROUND not in finalizers:
            finalizers.append(FOREGROUND)
        grace = _grace(place.resource, old, options)
        if not finalizers and grace == 0:
            return self.storage.remove(place.resource, key, old)
        if metadata.get("deletionGracePeriodSeconds", grace + 1) <= grace:
            return old
        new = {
            **metadata,
            "deletionTimestamp": self._timestamp(grace),
            "deletionGracePeriodSeconds": grace,
        }
        if finalizers:
            new["finalizers"] = finalizers
        if "generation" in metadata and "deletionTimestamp" not in metadata:
            new["generation"] = metadata["generation"] + 1
        return self.storage.store(place.resource, key, {**old, "metadata": new})

    def _refuse_new_finalizers(self, old: Object, new: Object) -> None:
        if "deletionTimestamp" not in old["metadata"]:
            return
        have = old["metadata"].get("finalizers") or ()
        if any(name not in have for name in new["metadata"].get("finalizers") or ()):
            raise Invalid(
                422, "Invalid", "no new finalizers can be added if the object is being deleted"
            )

    def _refuse_zero(self, item: Mapping[str, Any]) -> None:
        if not self.scale_to_zero and item.get("spec", {}).get("minReplicas") == 0:
            raise Invalid(422, "Invalid", "spec.minReplicas: must be greater than or equal to 1")

    def _known(self, item: Mapping[str, Any]) -> Object:
        behavior = item.get("spec", {}).get("behavior")
        if self.tolerances or not behavior:
            return {**item}
        kept = {
            direction: {name: value for name, value in rules.items() if name != "tolerance"}
            for direction, rules in behavior.items()
        }
        return {**item, "spec": {**item["spec"], "behavior": kept}}

    def _uid(self) -> str:
        return f"{self._chance.getrandbits(128):032x}"

    def _suffix(self) -> str:
        return "".join(self._chance.choices("bcdfghjklmnpqrstvwxz2456789", k=5))

    def _timestamp(self, later: float = 0) -> str:
        return to_rfc3339(self._now() + later).partition(".")[0] + "Z"


def _combined(place: Place, old: Object, wanted: Object) -> Object:
    """Return what a write to the object or to its status subresource may change."""
    if place.subresource == "status":
        return {**old, "status": wanted.get("status", {})}
    if place.subresource:
        raise ApiError(501, "NotImplemented", f"the fake has no {place.subresource} subresource")
    new = {**wanted, "apiVersion": old["apiVersion"], "kind": old["kind"]}
    if place.resource.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    kept = {
        field: value
        for field, value in old["metadata"].items()
        if field in (*_SET_BY_THE_SERVER, "resourceVersion", "deletionGracePeriodSeconds")
    }
    metadata = {field: value for field, value in wanted["metadata"].items() if value != []}
    new["metadata"] = {**metadata, **kept, "name": place.name, "namespace": place.namespace}
    return new


def _is_over(metadata: Mapping[str, Any]) -> bool:
    """Return whether nothing keeps a deleted object any longer."""
    waits = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds", 0)
    return "deletionTimestamp" in metadata and not waits


def _declared(item: Object) -> Object:
    return {name: part for name, part in item.items() if name not in ("metadata", "status")}


def _grace(resource: FakeResource, item: Object, options: Mapping[str, Any]) -> int:
    """Return the seconds that the deletion of an object takes at most: only pods have any."""
    if resource.plural != "pods":
        return 0
    ended = item["status"].get("phase") in ("Succeeded", "Failed")
    if ended or not item["spec"].get("nodeName"):
        return 0
    wanted = options.get("gracePeriodSeconds")
    if wanted is None:
        wanted = item["spec"].get("terminationGracePeriodSeconds", 30)
    return int(wanted)


def _without_kind(item: Object) -> Object:
    return {name: part for name, part in item.items() if name not in ("apiVersion", "kind")}
