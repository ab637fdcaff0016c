"""What objects tell by their metadata and references: whose they are, and of what content."""

from collections.abc import Callable, Iterable

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import PARALLEL_REGION


def own_key(item: Object) -> Iterable[Key]:
    """Return the key of the object itself."""
    return (key_of(item),)


def job_key(item: Object) -> Iterable[Key]:
    """Return the key of the Job that an object belongs to by its label, if any."""
    return _labelled(item, names.LABEL_JOB)


def pe_key(item: Object) -> Iterable[Key]:
    """Return the key of the ProcessingElement that an object belongs to, if any."""
    return _labelled(item, names.LABEL_PE)


def region_key(item: Object) -> Iterable[Key]:
    """Return the key of the ParallelRegion that an object belongs to, if any."""
    labels = item["metadata"].get("labels", {})
    job, region = labels.get(names.LABEL_JOB), labels.get(names.LABEL_REGION)
    if not job or not region:
        return ()
    return ((item["metadata"]["namespace"], names.region_name(job, region)),)


def pool_key(item: Object) -> Key | None:
    """Return the key of the Job to whose warm pool a pod belongs, if to any."""
    if names.LABEL_POOL not in item["metadata"].get("labels", {}):
        return None
    return next(iter(job_key(item)), None)


def _labelled(item: Object, label: str) -> Iterable[Key]:
    value = item["metadata"].get("labels", {}).get(label)
    return ((item["metadata"]["namespace"], value),) if value else ()


def label_key(label: str) -> Callable[[Object], Key | None]:
    """Return a function from an object to (namespace, value of its label), or None without it."""

    def key(item: Object) -> Key | None:
        metadata = item["metadata"]
        value = metadata.get("labels", {}).get(label)
        return (metadata["namespace"], value) if value else None

    return key


def scaled_region(autoscaler: Object) -> Key | None:
    """Return the ParallelRegion that a HorizontalPodAutoscaler scales."""
    target = autoscaler["spec"]["scaleTargetRef"]
    scaled = target.get("apiVersion"), target["kind"]
    if scaled != (PARALLEL_REGION.api_version, PARALLEL_REGION.kind):
        return None
    return autoscaler["metadata"]["namespace"], target["name"]


def saved_job(item: Object) -> Key:
    """Return the Job that a Savepoint, or a ConsistentRegion, is of."""
    return item["metadata"]["namespace"], item["spec"]["job"]


def named_cut(savepoint: Object) -> Key | None:
    """Return the ConsistentRegion whose cuts have names like that of a Savepoint, if any has."""
    region = names.region_of_cut(savepoint["metadata"]["name"])
    return (savepoint["metadata"]["namespace"], region) if region else None


def is_owned_by(item: Object, uid: str) -> bool:
    """Return whether an owner reference of an object is to the object of this uid."""
    references = item["metadata"].get("ownerReferences", [])
    return any(reference["uid"] == uid for reference in references)


def content_of(item: Object | None) -> str | None:
    """Return the content id that an object carries."""
    if item is None:
        return None
    content: str | None = item["metadata"].get("annotations", {}).get(names.ANNOTATION_CONTENT)
    return content
