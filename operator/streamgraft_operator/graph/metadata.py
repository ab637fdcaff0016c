"""Step 5, graph metadata: what each PE learns about its place in the graph."""

from collections.abc import Iterator
from dataclasses import replace

from streamgraft_common import names
from streamgraft_common.adl import Adl
from streamgraft_common.code import code_of_pe
from streamgraft_common.pe_metadata import ROCKSDB, STATE_STORE_PROVIDER, PeMetadata
from streamgraft_common.port_labels import PortLabel, label
from streamgraft_common.resources import CheckpointRepository
from streamgraft_operator.graph.diff import graph_content, in_place
from streamgraft_operator.graph.fusion import Stage
from streamgraft_operator.graph.model import GraphError, JobContext, PlannedPe
from streamgraft_operator.graph.placement import in_own_pools, placement_of
from streamgraft_operator.graph.ports import Ports
from streamgraft_operator.graph.slots import real_time_slots, task_slots
from streamgraft_operator.graph.topology import Block
from streamgraft_operator.graph.transforms import Replica, expand

DEFAULT_TRIGGER_SECONDS = 1.0
_MOST_SLOTS = 100_000
"""More than any machine has, and less than what doubles with every operator soon comes to."""


def planned_pes(
    adl: Adl, context: JobContext, ports: Ports, block: Block, width: int | None
) -> Iterator[PlannedPe]:
    """Yield the PEs of a region, channel by channel; `width` None: those outside.

    Channels differ in their place only, so that it is thought about the first one.
    """
    first = {stage: _planned_pe(adl, context, ports, block, stage) for stage in block.stages}
    for replica in expand(block.stages, width):
        pe = first[replica.stage]
        yield _in_channel(pe, context, block, replica) if replica.channel else pe


def _in_channel(pe: PlannedPe, context: JobContext, block: Block, replica: Replica) -> PlannedPe:
    """Return the PE of another channel than the first, of which `pe` is."""
    pe_id, channel = block.pe_id(replica.stage, replica.channel), replica.channel
    metadata = pe.metadata.model_copy(update={"pe_id": pe_id, "channel": channel})
    return replace(
        pe,
        name=names.pe_name(context.job, pe_id),
        pe_id=pe_id,
        channel=channel,
        metadata=metadata,
        content=in_place(pe.content, metadata),
    )


def _planned_pe(
    adl: Adl, context: JobContext, ports: Ports, block: Block, stage: Stage
) -> PlannedPe:
    """Return the PE of a stage, in a region that of its first channel."""
    channel = 0 if block.region else None
    pe_id = block.pe_id(stage, channel)
    settings = context.settings
    operators = [ports.model.operators[name] for name in stage.operators]
    inputs, outputs = ports.inputs(stage), ports.outputs(stage)
    shards = block.region.max_width if block.region else None
    least = real_time_slots(operators, inputs, outputs, shards, context.source_partitions)
    if least > _MOST_SLOTS:
        raise GraphError(
            f"the PE of {stage.name} would need more than {_MOST_SLOTS:,} task slots: in real-time"
            " mode each way of a record through it takes some; let rows go fewer ways, or give the"
            " region a lower max_width"
        )
    metadata = PeMetadata(
        namespace=context.namespace,
        job=context.job,
        pe_id=pe_id,
        stage_name=stage.name,
        region=stage.region,
        channel=channel,
        shard_count=shards or 1,
        operators=list(stage.operators),
        inputs=inputs,
        outputs=outputs,
        rehearsal=ports.rehearsal([*inputs, *outputs]),
        checkpoint_path=names.checkpoint_path(
            context.namespace,
            context.job,
            context.job_uid,
            stage.name,
            context.dropped_stages.get(stage.name, 0),
        ),
        savepoint=(
            names.savepoint_path(context.namespace, context.savepoint)
            if context.savepoint
            else None
        ),
        parameters={**adl.parameters, **context.parameters},
        trigger_seconds=(
            settings.trigger_seconds or adl.pe.trigger_seconds or DEFAULT_TRIGGER_SECONDS
        ),
        real_time=any(operator.real_time for operator in operators),
        slots=task_slots(context.threading, settings, operators, len(inputs), least),
        spark_conf={
            **_state_store(settings.checkpoint_repository),
            **adl.pe.spark_conf,
            **settings.spark_conf,
        },
        bundle_digest=context.bundle_digest,
        code_in_place=not adl.fixed_code,
        bundle=context.bundle,
    )
    code = code_of_pe(adl, context.bundle_digest, metadata)
    metadata = metadata.model_copy(update={"code": code})
    return PlannedPe(
        name=names.pe_name(context.job, pe_id),
        pe_id=pe_id,
        stage_name=metadata.stage_name,
        region=stage.region,
        channel=channel,
        stage=block.index(stage) if block.region else 0,
        metadata=metadata,
        content=graph_content(metadata),
        placement=in_own_pools(placement_of(operators, block.region), context.job, adl.host_pools),
        restartable=all(operator.restartable for operator in operators),
    )


def _state_store(repository: CheckpointRepository | None) -> dict[str, str]:
    if repository is None or repository.state_store == "Memory":
        return {}
    return {STATE_STORE_PROVIDER: ROCKSDB}


def port_labels(ports: Ports, pe: PlannedPe) -> dict[str, PortLabel]:
    """Return the labels of the operator inputs that the PE's input ports feed."""
    labels: dict[str, PortLabel] = {}
    by_stream = {port.stream: port for port in pe.metadata.inputs if not port.external}
    for name in pe.metadata.operators:
        for number, stream in enumerate(ports.model.operators[name].inputs):
            if port := by_stream.get(stream):
                place = PortLabel(pe.pe_id, port.port, port.topic)
                labels[label(name, pe.channel, number)] = place
    return labels
