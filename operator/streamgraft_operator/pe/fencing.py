"""A PE whose pod is gone: what its shards had open in Kafka is aborted.

Readers wait for an open transaction, those of other shards' records in the same partitions too. The
next owner of a shard would abort it, but one may be long in coming, or not come at all; the brokers
would after a minute. Done before the next launch is asked for, so that it hits no next owner.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

from streamgraft_common.bundle import BundleError
from streamgraft_common.kube.client import Object
from streamgraft_common.transactions import transactional_ids
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.context import Context
from streamgraft_operator.graph import GraphError, PlannedPe
from streamgraft_operator.kafka.client import Brokers, KafkaUnavailable
from streamgraft_operator.kit.parsed import pe_spec, pe_status
from streamgraft_operator.kit.together import together

log = logging.getLogger(__name__)


async def abort_open(
    context: Context,
    job: Object,
    expansion: Expansion,
    held: Iterable[tuple[PlannedPe, Sequence[int]]],
) -> None:
    """Fence shards of PEs: what they have open is aborted. Raises KafkaUnavailable."""
    tls = await context.kafka_tls.of(job)
    operators = expansion.bundle.adl.operators
    await together(
        context.kafka.fence(Brokers(servers, tls if encrypted else ()), named)
        for pe, shards in held
        for (servers, encrypted), named in transactional_ids(pe.metadata, operators, shards).items()
    )


async def fence(context: Context, job: Object, item: Object) -> None:
    """Fence the shards that a PE says it holds; brokers that are away are let be."""
    runtime, stage = pe_status(item).runtime, pe_spec(item).stage_name
    if runtime is None or not runtime.shards:
        return
    name, shards = item["metadata"]["name"], [int(shard) for shard in runtime.shards]
    if await _aborted(context, job, name, lambda pe: shards if pe.stage_name == stage else ()):
        log.info("%s: what shards %s had open in Kafka is aborted", name, shards)


async def fence_all(context: Context, job: Object) -> None:
    """Fence every shard of a job; brokers that are away are let be."""
    await _aborted(context, job, job["metadata"]["name"], lambda pe: range(pe.metadata.shard_count))


async def _aborted(
    context: Context, job: Object, name: str, held: Callable[[PlannedPe], Sequence[int]]
) -> bool:
    """Fence the shards that are held of each of a job's stages; return whether that was done."""
    try:
        expansion = await context.expander.expand(job, {})
        stages = expansion.topology.stages
        await abort_open(context, job, expansion, [(pe, held(pe)) for pe in stages])
    except (BundleError, GraphError, KafkaUnavailable) as error:
        log.warning("%s: what it had open in Kafka stays so for now: %s", name, error)
        return False
    return True
