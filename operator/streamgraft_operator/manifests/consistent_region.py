"""The ConsistentRegion resource of a region of the application, and the Savepoints of its cuts."""

import math
from typing import Any

from streamgraft_common import names
from streamgraft_common.adl import ConsistentRegion
from streamgraft_common.resources import (
    CONSISTENT_REGION,
    SAVEPOINT,
    ConsistentRegionSpec,
    SavepointSpec,
)
from streamgraft_operator.manifests.metadata import Owner, metadata


def consistent_region(owner: Owner, region: ConsistentRegion) -> dict[str, Any]:
    """Return the resource as the application has it."""
    spec = ConsistentRegionSpec(
        job=owner.name,
        region=region.name,
        operators=region.operators,
        trigger=region.trigger,
        period_seconds=region.period_seconds,
        drain_timeout_seconds=region.drain_timeout_seconds,
        retained_cuts=region.retained_cuts,
        repository=region.repository,
        roll_back_on=region.roll_back_on,
        max_rollbacks=region.max_rollbacks,
    )
    name = names.region_name(owner.name, region.name)
    manifest = CONSISTENT_REGION.manifest(name, owner.namespace, spec)
    return {**manifest, "metadata": metadata(owner, name, {})}


def cut_savepoint(owner: Owner, region: ConsistentRegionSpec, number: int) -> dict[str, Any]:
    """Return the Savepoint of a cut: it goes with the job."""
    name = names.cut_savepoint(names.region_name(owner.name, region.region), number)
    return _savepoint(owner, region, name)


def rollback_savepoint(
    owner: Owner, region: ConsistentRegionSpec, number: int, cut: str
) -> dict[str, Any]:
    """Return the Savepoint of a rollback; `cut`: name of that which it goes back to."""
    name = names.rollback_savepoint(names.region_name(owner.name, region.region), number)
    return _savepoint(owner, region, name, cut)


def _savepoint(
    owner: Owner, region: ConsistentRegionSpec, name: str, cut: str | None = None
) -> dict[str, Any]:
    spec = SavepointSpec(
        job=owner.name,
        consistent_region=region.region,
        operators=region.operators,
        repository=region.repository,
        rolls_back_to=cut,
        timeout_seconds=math.ceil(region.drain_timeout_seconds),
    )
    manifest = SAVEPOINT.manifest(name, owner.namespace, spec)
    return {**manifest, "metadata": metadata(owner, name, {})}
