"""Drivers that are free again: channels that a region gave up are deleted, and their pods wait for
the next PE in the warm pool, as warm as can be.

Nothing of a PE may be left in a pod for that. So the PE is deleted in the very version in which its
pod says that it holds no shard, and that it has applied a spec without any: nobody can give it one
then. What is not certain is ended, as ever.
"""

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_operator.kit.objects import content_of
from streamgraft_operator.kit.parsed import pe_spec, pe_status
from streamgraft_operator.manifests import is_generic


def is_free(item: Object) -> bool:
    """Return whether a PE's pod may go back to the warm pool it came from.

    A pod that was made for its PE has that one's name, and the next PE of this id would want it.
    """
    spec, status = pe_spec(item), pe_status(item)
    runtime = status.runtime
    if runtime is None or status.pod is None or spec.shards or spec.saving:
        return False
    return (
        names.is_warm_pod(spec.job, status.pod)
        and (runtime.pod, runtime.launch_count) == (status.pod, status.launch_count)
        and runtime.ready
        and runtime.reusable
        and not runtime.shards
        and runtime.epoch == spec.epoch
        and runtime.content_id == content_of(item)
        and is_generic(item)
    )
