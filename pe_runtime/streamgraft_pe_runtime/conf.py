"""Spark settings of a PE: what makes a micro-batch cheap and the driver small. Pure."""

from collections.abc import Mapping

from streamgraft_common.own_conf import OWN_PREFIX

_SMALL_AND_CHEAP = {
    # One state partition per shard: a shard is one partition of its input anyway.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    # Checks the plan after each rule of the optimizer: a guard for those who write rules.
    "spark.sql.lightweightPlanChangeValidation": "false",
    # What Spark remembers for a user interface that nobody has.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.sql.streaming.numRecentProgressUpdates": "100",
    # Half the files and half the renames per batch.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # The default starts `readlink` four times for each file (docs/decisions/0008-cheap-batches.md),
    # and lets two owners write the same entry (docs/decisions/0024-joint-queries.md).
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.streamgraft.ExclusiveCheckpointFiles"
    ),
    # The list knows Spark's own sinks only; builds look at the rest of it.
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    # Those of rehearsals are short.
    "spark.sql.streaming.realTimeMode.minBatchDuration": "100ms",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # A pod that dies amid its first batch leaves drafts of files, for which Spark would refuse the
    # checkpoint for ever. Whether it is the query's is looked at by us (lost_checkpoints.py).
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    # Spark counts how far the snapshots of each store are behind, and would not find those of a
    # joint query's shards, which go by names of their own: from the 50th version on it would have
    # every batch write all of the state.
    "spark.sql.streaming.stateStore.coordinatorReportSnapshotUploadLag": "false",
    "spark.sql.streaming.stateStore.forceSnapshotUploadOnLag": "false",
    # A function of a sink that does not return can't be interrupted: Spark would wait for ever.
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.python.daemon.module": "streamgraft_pe_runtime.python_daemon",
    # One consumer for each key group. Beyond 64, the default, each use of one closes the oldest.
    "spark.kafka.consumer.cache.capacity": "512",
    "spark.cleaner.periodicGC.interval": "10min",
}
ALIGN_SHARDS = "spark.streamgraft.alignShards"
"""Whether the shards of queries that start from now on are kept apart (scala/shards)."""
SEND_TABLES = "spark.streamgraft.sendTables"
"""Whether queries that start from now on send tables to the rows of streams that are joined with
them, of whatever size (scala/shards)."""
FEW_RECORDS = "spark.streamgraft.fewRecords"
"""Batches of a query have their projections interpreted, not compiled, up to so many records of a
partition (scala/shards)."""
_SLOTS = "spark.streamgraft.slots"
_EXTENSIONS = "spark.sql.extensions"
_OURS = "org.apache.spark.sql.streamgraft.ShardExtensions"


def spark_conf(name: str, slots: int, conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a driver; those of application and job (`conf`) win, beside our own
    planner rule."""
    return {
        "spark.master": f"local[{slots}]",
        "spark.app.name": name,
        **_SMALL_AND_CHEAP,
        **_without_ours(conf),
        _SLOTS: str(slots),
        _EXTENSIONS: ",".join([_OURS, *filter(None, [conf.get(_EXTENSIONS)])]),
    }


def _without_ours(conf: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in conf.items() if not name.startswith(OWN_PREFIX)}
