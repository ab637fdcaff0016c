"""What a Job has from its savepoint alone, and when that is let go of. Pure."""

from streamgraft_common.adl import Adl
from streamgraft_common.kube.client import Object

MANAGER = "streamgraft-restore"
"""Field manager of what a restored Job has from its savepoint alone: a later `submit`, which does
not name it, leaves it as it is."""


def outlived(job: Object, adl: Adl) -> list[str]:
    """Return the regions that a Job names because its savepoint did, and an application lacks.

    The operator refuses a region that the application lacks, as it may be misspelt; these nobody
    has written.
    """
    restored, written = set[str](), set[str]()
    for entry in job["metadata"].get("managedFields") or []:
        regions = entry.get("fieldsV1", {}).get("f:spec", {}).get("f:regions", {})
        (restored if entry.get("manager") == MANAGER else written).update(
            key.removeprefix("f:") for key in regions
        )
    return sorted(restored - written - {region.name for region in adl.regions})
