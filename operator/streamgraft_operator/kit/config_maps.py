"""ConfigMaps that the operator writes as a whole."""

from collections.abc import Callable
from typing import Any

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.coordinators import Coordinators
from streamgraft_operator.kit.objects import content_of
from streamgraft_operator.kit.taken import check_name

_DATA = ("data", "binaryData")
_METADATA = ("labels", "annotations", "ownerReferences")


async def replace_config_map(
    caches: Caches,
    write: Coordinators,
    manifest: Object,
    stays: Callable[[Object], bool] | None = None,
) -> Object | None:
    """Create a ConfigMap of a job, or replace its content if the content id differs; return what is
    there. Raises NameTaken.

    `stays` tells of the one that is there whether it is let be, if not by that id.
    """
    key, wanted = key_of(manifest), content_of(manifest)
    (owner,) = manifest["metadata"]["ownerReferences"]
    job = manifest["metadata"]["labels"][names.LABEL_JOB]

    def command(item: Object) -> dict[str, Any] | None:
        check_name("ConfigMap", item, job, owner["uid"])
        if stays(item) if stays else content_of(item) == wanted:
            return None
        patch: dict[str, Any] = {name: manifest[name] for name in _DATA if name in manifest}
        patch["metadata"] = {name: manifest["metadata"][name] for name in _METADATA}
        return patch

    if caches.config_maps.get(key) is None:
        await write.config_maps.create(manifest)
    return await write.config_maps.update(key, command)
