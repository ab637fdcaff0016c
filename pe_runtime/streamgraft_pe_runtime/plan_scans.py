"""What the scans of a plan read, by which positions are found again (scan_order.py)."""

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from streamgraft_pe_runtime.scan_order import other_name, scan_name

IMPORTED = "imported-streams"
"""The source of imports: scala/imports."""
WAY = "streamgraft.way"
"""Option of a source with the way that its rows go."""
_REFERENCE = "CTERelationRef"
"""The leaf where a SELECT reads what a WITH defines; the definition has the scans."""


def names(frame: DataFrame) -> list[str | None]:
    """Return the name of each scan: its topic, or what it reads else; None for what nobody knows.

    With `@` and its brokers, if another topic has this name in another Kafka cluster, and with the
    way that its rows go, if that is known. Rows of one topic may go several ways.
    """
    scans = of(frame)
    named = {topic for topic, _, _ in filter(None, scans)}
    places = {
        topic: {servers for name, servers, _ in filter(None, scans) if name == topic}
        for topic in named
    }
    return [
        scan and scan_name(scan[0], scan[1] if len(places[scan[0]]) > 1 else "", scan[2])
        for scan in scans
    ]


class OtherStreams(Exception):
    """A function reads a stream that is none of its inputs."""


def check_inputs(operator: str, result: DataFrame, inputs: Sequence[DataFrame]) -> None:
    """Raise OtherStreams if what an operator of a region gives reads more than its inputs do.

    Partition j of another topic is not shard j's, whoever reads it. Bundles of former builds may
    have such functions.
    """
    known = {scan for frame in inputs for scan in of(frame)}
    if others := set(of(result)) - known:
        named = ", ".join(sorted(scan[0] if scan else "of unknown name" for scan in others))
        raise OtherStreams(
            f"{operator} reads a stream that is none of its inputs ({named}), of which its shards"
            " would get what is not of their keys: declare it as a source, and give it to the"
            " operator as an input"
        )


def of(frame: DataFrame) -> list[tuple[str, str, str] | None]:
    """Return what each scan of a frame reads, brokers and way; None for what nobody knows."""
    leaves: Any = frame._jdf.queryExecution().analyzed().collectLeaves()
    found = (leaves.apply(index) for index in range(leaves.size()))
    return [_scan(leaf) for leaf in found if leaf.isStreaming() and leaf.nodeName() != _REFERENCE]


def _scan(leaf: Any) -> tuple[str, str, str] | None:
    """Return what a leaf of a plan reads, brokers and way; None if nobody knows."""
    if leaf.nodeName() != "StreamingRelationV2":
        return None
    options = leaf.extraOptions()
    if leaf.sourceName() == IMPORTED:
        return other_name("import", options.get("operator")), "", ""
    if leaf.sourceName() != "kafka":
        return other_name("source", leaf.sourceName()), "", ""
    if assigned := options.get("assign"):
        topic = next(iter(json.loads(assigned)))
    else:
        topic = options.get("subscribe")
    servers, way = options.get("kafka.bootstrap.servers"), options.get(WAY) or ""
    return (str(topic), str(servers), str(way)) if topic else None
