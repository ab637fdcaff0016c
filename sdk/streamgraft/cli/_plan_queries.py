"""How many queries the PEs of each stage run, why, and how often these look for records. Pure."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from streamgraft_common.adl import Operator
from streamgraft_common.joint import apart
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_common.triggers import SHARD_SECONDS, SHARE, assumed_batch, longest_interval

BATCH_SECONDS = 0.15
"""What a small batch takes, from its trigger until its records can be read (docs/use/plan.md)."""

Mode = Literal["one", "one per channel", "one per shard"]


@dataclass(frozen=True)
class StageQueries:
    """The queries of a stage. What it says of costs was measured (docs/use/batch-cost.md)."""

    stage: str
    mode: Mode
    """`one`: of a stage that has a single shard, or is outside of regions."""
    why: str | None
    """Why each shard has a query of its own."""
    queries: int
    """Of the PE that has the most."""
    stateful: bool
    batch_seconds: float
    usual_seconds: float
    """Between its triggers while there is CPU to spare and little to do; 0 in real-time mode."""
    longest_seconds: float
    """Between its triggers; 0 in real-time mode."""

    @property
    def real_time(self) -> bool:
        """Whether it has no triggers."""
        return self.longest_seconds == 0

    def __str__(self) -> str:
        if self.mode == "one per shard":
            return f"Stage {self.stage}: a query per shard ({self.why}); {self._cost}"
        return (
            f"Stage {self.stage}: one query per channel, whatever the number of its shards;"
            f" {self._cost}"
        )

    @property
    def _cost(self) -> str:
        if self.mode == "one per shard" and self.real_time:
            return (
                f"{self.queries} in the fullest channel, each of which polls Kafka all the time;"
                " eight and the PE before took 0.62 cores"
            )
        if self.mode == "one per shard":
            return "each pays for batches of its own, of 0.1 s of CPU, and more with state"
        if self.stateful:
            return "a batch takes about 5 ms more for each shard that has records"
        return "32 took no more CPU than one, and records 0.25 s more over two PEs"


def stage_queries(
    pes: Iterable[PeMetadata], operators: Iterable[Operator], widths: Mapping[str, int]
) -> list[StageQueries]:
    """Return those of each stage, by its name. `widths`: of regions, by their names."""
    named = {operator.name: operator for operator in operators}
    stages = {pe.stage_name: pe for pe in pes}
    return [_queries(stages[name], named, widths) for name in sorted(stages)]


def _queries(
    pe: PeMetadata, named: Mapping[str, Operator], widths: Mapping[str, int]
) -> StageQueries:
    stateful = any(named[name].stateful for name in pe.operators)
    divided = pe.region is not None and pe.shard_count > 1
    why = apart(pe, named.values()) if divided else None
    held = math.ceil(pe.shard_count / max(widths[pe.region], 1)) if pe.region and divided else 1
    queries, shards = (held, 1) if why else (1, held)
    batch = BATCH_SECONDS + stateful * (shards - 1) * SHARD_SECONDS
    assumed = assumed_batch(shards, stateful=stateful)
    longest = longest_interval(pe.trigger_seconds, queries, pe.slots, assumed)
    return StageQueries(
        stage=pe.stage_name,
        mode="one per shard" if why else "one per channel" if divided else "one",
        why=why,
        queries=queries,
        stateful=stateful,
        batch_seconds=batch,
        usual_seconds=0.0 if pe.real_time else min(queries * batch / SHARE, longest),
        longest_seconds=0.0 if pe.real_time else longest,
    )
