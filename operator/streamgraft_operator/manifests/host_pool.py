"""The HostPools that an application declares."""

from typing import Any

from streamgraft_common import names
from streamgraft_common.declared_objects import HostPoolDeclaration
from streamgraft_common.resources import HOST_POOL, HostPoolSpec
from streamgraft_operator.manifests.metadata import Owner, metadata


def host_pool(owner: Owner, declared: HostPoolDeclaration) -> dict[str, Any]:
    """Return the resource: PEs of other jobs may not use it."""
    spec = HostPoolSpec(
        job=owner.name,
        hosts=declared.hosts or None,
        tags=declared.tags or None,
        size=declared.size,
        exclusive=declared.exclusive,
    )
    name = names.host_pool(owner.name, declared.name)
    manifest = HOST_POOL.manifest(name, owner.namespace, spec)
    return {**manifest, "metadata": metadata(owner, name, {})}
