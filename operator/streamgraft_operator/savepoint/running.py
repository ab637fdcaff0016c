"""Whether the version of a job that was accepted last is what runs.

Savepoints are planned from it. As long as it is not carried out, other stages run than it says: one
that is not in the plan would neither stop nor be saved.
"""

from streamgraft_common import names
from streamgraft_common.content import Content
from streamgraft_common.kube.store import Key
from streamgraft_common.resources import SavepointSpec
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.graph.model import PlannedPe
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.objects import content_of
from streamgraft_operator.savepoint.part import wanted_pes


def is_of_part(spec: SavepointSpec) -> bool:
    """Return whether a savepoint is of a part of a job; the operator asks for those."""
    return spec.region is not None or spec.consistent_region is not None


def runs(caches: Caches, job: Key, expansion: Expansion, wanted: SavepointSpec) -> bool:
    """Return whether what is to be saved runs as planned.

    Of a part only its own stages count, so that cuts go on whatever else a refused edit is about.
    """
    if is_of_part(wanted):
        planned = wanted_pes(expansion, wanted)
        return all(_runs(caches, job, expansion, pe) for pe in planned)
    config_map = caches.config_maps.get((job[0], names.job_config_map(job[1])))
    return content_of(config_map) == expansion.content_id


def _runs(caches: Caches, job: Key, expansion: Expansion, planned: PlannedPe) -> bool:
    """Return whether a stage does what is planned.

    One of a parallel region counts with its code and settings: as long as these are others, nobody
    takes shards from the region. A PE that is not there is waited for elsewhere.
    """
    if planned.region is not None:
        region = caches.regions.get((job[0], names.region_name(job[1], planned.region)))
        return content_of(region) == expansion.region_contents[planned.region]
    if (item := caches.processing_elements.get((job[0], planned.name))) is None:
        return True
    now, then = Content.parse(content_of(item) or ""), expansion.contents[planned.pe_id]
    return (now.place, now.plan) == (then.place, then.plan)
