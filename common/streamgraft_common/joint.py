"""Which stages run one query over all shards of a channel, and which a query per shard. Pure.

The answer says how shards had best move and what `streamgraft plan` shows. A PE follows it unless
Spark's physical plan says otherwise; then it runs a query per shard, which is always right.
"""

from collections.abc import Iterable, Mapping

from streamgraft_common.adl import Operator
from streamgraft_common.pe_metadata import HDFS, ROCKSDB, STATE_STORE_PROVIDER, PeMetadata

_UNDERSTOOD = {
    "spark.sql.shuffle.partitions": ("1",),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": ("1",),
    STATE_STORE_PROVIDER: (HDFS, ROCKSDB),
}
"""Settings with which each state of a shard is one store of Spark's own."""


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
    if functions := [operator.name for operator in ours if operator.kind in ("sink", "source")]:
        return f"a function of its own in {', '.join(functions)}"
    stateful = [operator for operator in ours if operator.stateful]
    if timed := [operator.name for operator in stateful if not operator.joint_state]:
        return f"state in {', '.join(timed)} that goes by time, or is of two streams"
    if marked := [operator.name for operator in ours if operator.event_time]:
        return f"a watermark in {', '.join(marked)}"
    return _unusual(metadata.spark_conf) if stateful else None


def _unusual(conf: Mapping[str, str]) -> str | None:
    """Return which setting has state kept in another way, if any."""
    for name, values in _UNDERSTOOD.items():
        if name in conf and conf[name] not in values:
            return f"state with {name}={conf[name]}"
    return None
