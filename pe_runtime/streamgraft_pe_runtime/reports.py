"""What Spark's reports of a batch say about shards."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streamgraft_common.pe_metadata import InputPort
from streamgraft_common.timestamps import from_rfc3339, to_rfc3339
from streamgraft_pe_runtime.positions import merged


def ended_at(report: Mapping[str, Any]) -> str:
    """Return when a batch ended (RFC 3339, milliseconds), from Spark's progress."""
    return to_rfc3339(from_rfc3339(report["timestamp"]) + batch_seconds(report))


def batch_seconds(report: Mapping[str, Any], phase: str = "triggerExecution") -> float:
    """Return how long a batch took, or a phase of it."""
    return float(report["durationMs"].get(phase, 0)) / 1000


def late_rows(report: Mapping[str, Any]) -> int:
    """Return how many rows operators with state left out because they came behind the watermark.

    An aggregation before them may have made one of several rows.
    """
    operators = report["stateOperators"]
    return sum(max(item.get("numRowsDroppedByWatermark", 0), 0) for item in operators)


def owned_partitions(port: InputPort, region: bool, shard: int, known: Iterable[int]) -> list[int]:
    """Return the partitions of an input that a shard reads; `known`: what the topic has."""
    if region:
        return [shard]
    return list(range(port.partitions)) if port.partitions is not None else sorted(known)


def shares(report: Mapping[str, Any], shards: Sequence[int]) -> dict[int, float]:
    """Return which share of a batch's records each shard has; only those that have some. Pure.

    Shards of a query with others read one partition of each input, of the shard's number.
    """
    if len(shards) == 1:
        return {shards[0]: 1.0}
    read = _passed(report)
    total = sum(read.values())
    return {shard: read[shard] / total for shard in shards if read.get(shard, 0) > 0}


def gaps(report: Mapping[str, Any]) -> int:
    """Return how many offsets a batch has passed that hold no record: ends of transactions, aborted
    records, and what compaction has removed. Pure.

    A batch without rows may be one that was written before and is left out.
    """
    rows = int(report["numInputRows"])
    return max(sum(_passed(report).values()) - rows, 0) if rows > 0 else 0


def _passed(report: Mapping[str, Any]) -> dict[int, int]:
    """Return how many offsets a batch has passed in the partitions of each number."""
    passed: dict[int, int] = {}
    for source in report["sources"]:
        begin = merged([source["startOffset"]])
        for key, end in merged([source["endOffset"]]).items():
            passed[key[1]] = passed.get(key[1], 0) + end - begin.get(key, end)
    return passed
