"""Where stages that are rolled back go on: at the ends of the topics between them.

What is in these topics was read before the cut, or its source reads what it comes from again. To be
asked once nobody runs a shard: what a pod that was lost has open is aborted then, and it writes no
more.
"""

import asyncio
from collections.abc import Mapping

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import SavepointSpec
from streamgraft_operator.application.expansion import Expansion
from streamgraft_operator.context import Context
from streamgraft_operator.kafka.client import Brokers
from streamgraft_operator.pe.fencing import abort_open
from streamgraft_operator.savepoint.part import topics_between, wanted_pes


async def ends(
    context: Context, job: Object, expansion: Expansion, spec: SavepointSpec
) -> dict[str, list[int]]:
    """Return topics and the ends of their partitions. Raises KafkaUnavailable."""
    planned = wanted_pes(expansion, spec)
    held = [(pe, range(pe.metadata.shard_count)) for pe in planned]
    await abort_open(context, job, expansion, held)
    brokers, key = await context.brokers_of(job), key_of(job)
    read = topics_between(planned).items()
    found = await asyncio.gather(
        *(_ends(context, brokers, key, stage, topics) for stage, topics in read)
    )
    return {topic: partitions for topics in found for topic, partitions in topics.items()}


async def _ends(
    context: Context, brokers: Brokers, job: Key, stage: str, topics: Mapping[str, int]
) -> dict[str, list[int]]:
    group = names.consumer_group(*job, stage)
    found: dict[str, list[int]] = {topic: [0] * count for topic, count in topics.items()}
    for position in await context.kafka.positions(brokers, group, topics):
        found[position.topic][position.partition] = position.end
    return found
