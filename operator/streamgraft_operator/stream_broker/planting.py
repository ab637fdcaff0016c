"""The Imports and Exports of a job: created and deleted. What users edit is left alone until the
application declares something else."""

from streamgraft_common.kube.client import Object
from streamgraft_common.resources import EXPORT
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.context import Context
from streamgraft_operator.kit.coordinator import Command, Patch, replacing
from streamgraft_operator.kit.objects import content_of
from streamgraft_operator.kit.taken import check_name
from streamgraft_operator.manifests.metadata import Owner
from streamgraft_operator.manifests.shared_streams import DECLARED, shared_streams


class StreamPlanter:
    """Brings the Imports and Exports of a job in line with its topology."""

    def __init__(self, context: Context) -> None:
        caches, write = context.caches, context.write
        self._exports = caches.exports, caches.exports_by_job, write.exports
        self._imports = caches.imports, caches.imports_by_job, write.imports

    async def plant(self, owner: Owner, expansion: Expansion) -> None:
        """Create what is missing, delete what is surplus. Raises NameTaken."""
        planned = shared_streams(owner, expansion.bundle.adl, expansion.topology)
        for cache, by_job, write in (self._exports, self._imports):
            is_export = cache is self._exports[0]
            ours = [item.manifest for item in planned if (item.kind is EXPORT) == is_export]
            wanted = {manifest["metadata"]["name"]: manifest for manifest in ours}
            for item in by_job.get((owner.namespace, owner.name)):
                if item["metadata"]["name"] not in wanted:
                    await write.delete(item)
            for name, manifest in wanted.items():
                key = owner.namespace, name
                found = cache.get(key) or await write.create(manifest)
                check_name(manifest["kind"], found, owner.name, owner.uid)
                await write.update(key, _command(manifest))


def _command(manifest: Object) -> Command:
    def command(item: Object) -> Patch | None:
        same = content_of(item) == content_of(manifest)
        left = DECLARED if same else ()
        old, new = (
            {name: value for name, value in spec.items() if name not in left}
            for spec in (item["spec"], manifest["spec"])
        )
        changed = replacing(old, new)
        if same and not changed:
            return None
        return {"metadata": {"annotations": manifest["metadata"]["annotations"]}, "spec": changed}

    return command
