"""Which stages run one query over all shards of a channel, and which a query per shard. Pure.

The answer says how shards had best move and what `streamgraft plan` shows. A PE follows it unless
Spark's physical plan says otherwise; then it runs a query per shard, which is always right.
"""

from collections.abc import Iterable

from streamgraft_common.adl import Operator
from streamgraft_common.pe_metadata import PeMetadata


def apart(metadata: PeMetadata, operators: Iterable[Operator]) -> str | None:
    """Return why each shard of a PE has a query of its own; None if all share one.

    `operators`: of the application.
    """
    named = {operator.name: operator for operator in operators}
    ours = [named[name] for name in metadata.operators]
    if metadata.region is None or metadata.shard_count == 1:
        return "it has one shard"
    if metadata.real_time:
        return "real-time mode"
    if stateful := [operator.name for operator in ours if operator.stateful]:
        return f"state in {', '.join(stateful)}"
    if functions := [operator.name for operator in ours if operator.kind in ("sink", "source")]:
        return f"a function of its own in {', '.join(functions)}"
    return None
