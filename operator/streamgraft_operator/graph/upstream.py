"""Which regions feed which, through operators outside of regions too."""

from collections.abc import Mapping
from dataclasses import dataclass

from streamgraft_common.adl import Adl, Operator


@dataclass(frozen=True)
class Above:
    """What feeds a region."""

    regions: tuple[str, ...]
    """The regions whose output reaches it without passing another one."""
    others: bool
    """Whether sources and imports reach it as well."""


def above_regions(adl: Adl) -> dict[str, Above]:
    """Return for each region what feeds it."""
    producers = {stream: operator for operator in adl.operators for stream in operator.outputs}
    return {region.name: _above(region.name, adl, producers) for region in adl.regions}


def _above(region: str, adl: Adl, producers: Mapping[str, Operator]) -> Above:
    found: set[str] = set()
    others = False
    waiting = [op for op in adl.operators if op.region == region]
    seen = {operator.name for operator in waiting}
    while waiting:
        consumer = waiting.pop()
        others |= not consumer.inputs
        for stream in consumer.inputs:
            operator = producers[stream]
            if operator.name in seen:
                continue
            seen.add(operator.name)
            if operator.region is None:
                waiting.append(operator)
            else:
                found.add(operator.region)
    return Above(tuple(sorted(found)), others)
