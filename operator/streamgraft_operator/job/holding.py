"""Which edits wait: those of a job of which a part goes back to a cut.

Some of its checkpoints are those of the cut by then, and others are not. If a stage became another
one in the midst of that, nobody could bring the rest there; nor could anybody if the cut went with
its consistent region.
"""

from collections.abc import Iterable

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.graph import Change, diff
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.parsed import pe_spec, savepoint_spec
from streamgraft_operator.kit.rollbacks import is_half_back
from streamgraft_operator.pe.grafting import contents_of


def held_by(caches: Caches, job: Key, expansion: Expansion) -> str:
    """Return the rollback that a graph has to wait for; '' if it has to wait for none."""
    rollbacks = [item for item in caches.savepoints_by_job.get(job) if is_half_back(item)]
    if rollbacks and _edits(caches.processing_elements_by_job.get(job), expansion):
        return str(rollbacks[0]["metadata"]["name"])
    kept = {None, *(region.name for region in expansion.bundle.adl.consistent_regions)}
    of_dropped = (
        str(item["metadata"]["name"])
        for item in rollbacks
        if savepoint_spec(item).consistent_region not in kept
    )
    return next(of_dropped, "")


def _edits(pes: Iterable[Object], expansion: Expansion) -> bool:
    """Return whether PEs that exist would change or go, other than by a region's width.

    What is missing is made all the same: the rollback may wait for it.
    """
    pes = list(pes)
    changes = diff(contents_of(pes), expansion.contents)
    by_width = {region.region.name for region in expansion.topology.regions}
    regions = {pe_spec(item).pe_id: pe_spec(item).region for item in pes}
    return any(
        regions[pe_id] not in by_width if change is Change.REMOVED else change in _OF_EXISTING
        for pe_id, change in changes.items()
    )


_OF_EXISTING = (Change.METADATA_ONLY, Change.IN_PLACE, Change.RESTART)
