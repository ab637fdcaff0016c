"""Under which transactional ids the shards of a PE write to Kafka. Pure.

All streams between PEs, and all sinks at the job's own brokers that have no options of their own,
share an id; each other sink has its own, named after it, so that a change of the one never makes
it another's (docs/use/exactly-once.md). In real-time mode there is one id for all.
"""

from collections.abc import Iterable, Mapping

from streamgraft_common import names
from streamgraft_common.adl import KafkaEndpoint, Operator
from streamgraft_common.pe_metadata import OutputPort, PeMetadata

MAIN = ""
"""In the place of a sink's name: what is shared."""


def sink_of(port: OutputPort, operators: Mapping[str, Operator]) -> str:
    """Return the sink whose transaction records that leave by a port are in."""
    endpoint = endpoint_of(port, operators)
    alone = endpoint and (
        endpoint.bootstrap_servers or endpoint.options or endpoint.delivery == "at_least_once"
    )
    return port.operator if alone else MAIN


def transactional_id(
    port: OutputPort, operators: Mapping[str, Operator], metadata: PeMetadata, shard: int
) -> str | None:
    """Return the id under which a shard writes to a port; None if it does so at least once."""
    endpoint = endpoint_of(port, operators)
    loose = [operators[name].delivery for name in metadata.operators if metadata.real_time]
    if "at_least_once" in (*loose, endpoint.delivery if endpoint else None):
        return None
    # In real-time mode one producer writes to all, whichever sinks there are.
    sink = MAIN if metadata.real_time else sink_of(port, operators)
    return names.transactional_id(
        metadata.namespace, metadata.job, metadata.stage_name, shard, sink
    )


def transactional_ids(
    metadata: PeMetadata, operators: Iterable[Operator], shards: Iterable[int]
) -> dict[tuple[str, bool], list[str]]:
    """Return the ids of some shards, by the brokers' addresses and whether they speak TLS.

    But for those at brokers that only the PE can talk to.
    """
    named = {operator.name: operator for operator in operators}
    found: dict[tuple[str, bool], set[str]] = {}
    for port in metadata.outputs:
        endpoint = endpoint_of(port, named)
        if endpoint and endpoint.guarded:
            continue
        for shard in shards:
            if own := transactional_id(port, named, metadata, shard):
                found.setdefault((port.bootstrap_servers, port.tls), set()).add(own)
    return {brokers: sorted(ids) for brokers, ids in found.items()}


def endpoint_of(port: OutputPort, operators: Mapping[str, Operator]) -> KafkaEndpoint | None:
    """Return what the application says of a port's topic; None for streams between PEs."""
    return operators[port.operator].kafka if port.external else None
