"""What the regions of a job mean for each other, along the graph.

A region that is widened soon sends more to those below it: they are sized for that now, not after
their own lag has grown. A region that no width lets do more can't use more from above: what is sent
faster would only wait elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class RegionFlow:
    """The flow through one region, in records/s."""

    work: float
    """What it should process, without the reserve for pauses: that is no flow."""
    processing_rate: float
    """What it processes."""
    limit: float
    """What it can process, however wide it is made."""
    upstream: Sequence[str] = ()
    """The regions that feed it."""
    mixed_rate: float = 0.0
    """What comes into it, if others than these regions feed it as well; else 0."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What other regions mean for one."""

    growth: float = 1.0
    """Factor of the input rate once the regions upstream do their work, 1 or more."""
    usable: float = 1.0
    """Share of its work that the regions downstream can process, at most 1."""
    bottleneck: str | None = None
    """Which of them limits it, if any."""


ALONE = Neighbourhood()
"""What a region without neighbours, or with ones that don't matter, gets."""


def neighbourhoods(regions: Mapping[str, RegionFlow]) -> dict[str, Neighbourhood]:
    """Return what the others mean for each region. Unknown names in `upstream` are left out, and a
    loop through topics outside of the job is followed once."""
    if not any(flow.upstream for flow in regions.values()):
        return dict.fromkeys(regions, ALONE)
    order = _topological(regions)
    growth: dict[str, float] = {}
    for name in order:
        growth[name] = _growth(name, regions, growth)
    possible = {name: _possible(regions[name], growth[name]) for name in order}
    sent: dict[str, Neighbourhood] = {}
    """With the usable share of what a region can send, however wide it is made."""
    for name in reversed(order):
        usable, bottleneck = 1.0, None
        for below in (other for other in order if name in regions[other].upstream):
            own, further = possible[below], sent.get(below, ALONE)
            share = own * further.usable
            if share < usable:
                usable, bottleneck = share, below if own < 1 else further.bottleneck
        sent[name] = Neighbourhood(growth[name], usable, bottleneck)
    return {
        name: replace(around, usable=around.usable * possible[name])
        if around.bottleneck
        else around
        for name, around in sent.items()
    }


def _possible(flow: RegionFlow, growth: float) -> float:
    """Return the share of its work that a region can do, however wide it is made."""
    wanted = flow.work * growth
    return min(1.0, flow.limit / wanted) if wanted > 0 else 1.0


def _growth(name: str, regions: Mapping[str, RegionFlow], known: Mapping[str, float]) -> float:
    """Return by how much the input of a region grows.

    Never less than 1: what arrives is measured, and a region above that is idle or slow for other
    reasons must not shrink a region that is busy.
    """
    above = [(up, regions[up]) for up in regions[name].upstream if up in known]
    now = sum(flow.processing_rate for _, flow in above)
    if now <= 0:
        return 1.0
    then = sum(min(flow.work * known[up], flow.limit) for up, flow in above)
    # What comes from elsewhere stays as it is; how much of a mixture that is nobody measures.
    return max(1.0, 1.0 + (then - now) / max(now, regions[name].mixed_rate))


def _topological(regions: Mapping[str, RegionFlow]) -> list[str]:
    order: list[str] = []
    visiting: set[str] = set()

    def visit(name: str) -> None:
        if name in visiting or name not in regions:
            return
        visiting.add(name)
        for up in regions[name].upstream:
            visit(up)
        order.append(name)

    for name in regions:
        visit(name)
    return order
