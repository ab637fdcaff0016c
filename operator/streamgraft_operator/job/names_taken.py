"""Whether the names of what a job is made of are free."""

from streamgraft_common import names
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.taken import check_name
from streamgraft_operator.manifests.metadata import Owner


def check_names(caches: Caches, owner: Owner, expansion: Expansion) -> None:
    """Raise NameTaken if something else has one of them: before anything is made, for a job that is
    made in part does not run."""
    topology, adl = expansion.topology, expansion.bundle.adl
    pes = [pe.name for pe in topology.pes]
    notes = [names.job_config_map(owner.name), names.accepted_config_map(owner.name)]
    exports, imports = (
        [names.shared_stream(owner.name, item.name) for item in adl.operators if item.kind == kind]
        for kind in ("export", "import")
    )
    cut = [names.region_name(owner.name, region.name) for region in adl.consistent_regions]
    for kind, cache, wanted in (
        ("ConfigMap", caches.config_maps, [*notes, *pes]),
        ("Service", caches.services, pes),
        ("ProcessingElement", caches.processing_elements, pes),
        ("ParallelRegion", caches.regions, [region.name for region in topology.regions]),
        ("ConsistentRegion", caches.consistent_regions, cut),
        ("Export", caches.exports, exports),
        ("Import", caches.imports, imports),
    ):
        for name in wanted:
            check_name(kind, cache.get((owner.namespace, name)), owner.name, owner.uid)
