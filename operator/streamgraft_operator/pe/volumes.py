"""Whether a job's checkpoints stay where they are.

On another volume all of the job would begin anew, without a word: positions and state would be
gone, and ledgers written over. A rule of the Job guards its own volume; that of the installation
may change under a job.
"""

import json
from collections.abc import Mapping
from typing import Any

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_operator import manifests
from streamgraft_operator.graph import GraphError
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.objects import is_owned_by


def check_volume(caches: Caches, job: Object, wanted: Mapping[str, Any]) -> None:
    """Raise GraphError if the job has its checkpoints on another volume than is wanted."""
    namespace, name = key_of(job)
    own = caches.config_maps.get((namespace, names.job_config_map(name)))
    if own is not None and is_owned_by(own, job["metadata"]["uid"]):
        check_same_volume(manifests.checkpoints_of(own), wanted)


def check_same_volume(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise GraphError if checkpoints that are `there` are wanted elsewhere; empty: not known."""
    if there in ({}, wanted):
        return
    raise GraphError(
        f"the checkpoints of the job are on the volume {json.dumps(there)}, and on"
        f" {json.dumps(wanted)} all of it would begin anew: let it have the volume of before (its"
        " own, or that of the operator); docs/use/repositories.md says how a job moves to another"
    )
