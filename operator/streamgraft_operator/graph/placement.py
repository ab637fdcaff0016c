"""Placement of a PE: what its operators ask for, taken together."""

from collections.abc import Iterable

from streamgraft_common import names
from streamgraft_common.adl import Operator, Placement, Region
from streamgraft_common.declared_objects import HostPoolDeclaration


def combined(placements: Iterable[Placement]) -> Placement | None:
    """Return what a PE of operators with these placements asks for; None if they can't share one.

    They can't with different hosts or host pools, or with an exlocation token that two of them
    have: those are to be on different nodes.
    """
    wanted = list(placements)
    places = {(one.host, one.host_pool) for one in wanted} - {(None, None)}
    apart = [token for one in wanted for token in set(one.exlocate)]
    if len(places) > 1 or len(apart) > len(set(apart)):
        return None
    host, host_pool = next(iter(places), (None, None))
    return Placement(
        host=host,
        host_pool=host_pool,
        colocate=sorted({token for one in wanted for token in one.colocate}),
        exlocate=sorted(apart),
        isolate=any(one.isolate for one in wanted),
    )


def placement_of(operators: Iterable[Operator], region: Region | None) -> Placement:
    """Return the placement of a PE with these operators, which can share one."""
    own = combined(operator.placement for operator in operators) or Placement()
    if region is None:
        return own
    around = region.placement
    placed = own if own.host or own.host_pool else around
    return Placement(
        host=placed.host,
        host_pool=placed.host_pool,
        colocate=sorted({*own.colocate, *around.colocate}),
        exlocate=sorted({*own.exlocate, *around.exlocate}),
        isolate=own.isolate or around.isolate,
    )


def in_own_pools(
    placement: Placement, job: str, declared: Iterable[HostPoolDeclaration]
) -> Placement:
    """Return the placement with the resource's name of the host pool, if the application declares
    it; others are named as they are."""
    if placement.host_pool not in {pool.name for pool in declared}:
        return placement
    return placement.model_copy(update={"host_pool": names.host_pool(job, placement.host_pool)})
