"""Which regions feed which, through operators outside of regions too."""

from collections.abc import Mapping

from streamgraft_common.adl import Adl, Operator


def upstream_regions(adl: Adl) -> dict[str, tuple[str, ...]]:
    """Return for each region the regions whose output reaches it without passing another one."""
    producers = {stream: operator for operator in adl.operators for stream in operator.outputs}
    return {region.name: _above(region.name, adl, producers) for region in adl.regions}


def _above(region: str, adl: Adl, producers: Mapping[str, Operator]) -> tuple[str, ...]:
    found: set[str] = set()
    waiting = [op for op in adl.operators if op.region == region]
    seen = {operator.name for operator in waiting}
    while waiting:
        for stream in waiting.pop().inputs:
            operator = producers[stream]
            if operator.name in seen:
                continue
            seen.add(operator.name)
            if operator.region is None:
                waiting.append(operator)
            else:
                found.add(operator.region)
    return tuple(sorted(found))
