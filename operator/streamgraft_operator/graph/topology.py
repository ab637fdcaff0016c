"""Step 3, the topology: executable stages with ids, where regions are but their metadata.

PEs outside of regions come first, in topological order; then each region, in the order of the
application, has a block of `max_width x stages` ids. So an id never depends on a width.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from streamgraft_common.adl import Region
from streamgraft_operator.graph.fusion import Stage


@dataclass(frozen=True)
class Block:
    """The stages of one region (or those outside), and the ids of their PEs."""

    region: Region | None
    stages: tuple[Stage, ...]
    first_pe_id: int

    def pe_id(self, stage: Stage, channel: int | None) -> int:
        """Return the id of the PE that runs a stage in a channel."""
        return self.first_pe_id + (channel or 0) * len(self.stages) + self.index(stage)

    def index(self, stage: Stage) -> int:
        """Return the label `stage` of its PEs: the place within the channel, 0 outside."""
        return self._numbers[stage.name]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {stage.name: number for number, stage in enumerate(self.stages)}


def blocks(stages: Iterable[Stage], regions: Iterable[Region]) -> tuple[Block, ...]:
    """Number the stages: first those outside of regions, then region by region."""
    everything = list(stages)
    outside = tuple(stage for stage in everything if stage.region is None)
    result = [Block(None, outside, 0)]
    next_id = len(outside)
    for region in regions:
        inside = tuple(stage for stage in everything if stage.region == region.name)
        result.append(Block(region, inside, next_id))
        next_id += region.max_width * len(inside)
    return tuple(result)
