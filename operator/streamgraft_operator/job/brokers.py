"""Other addresses of a job's brokers: fine, as long as they are of the same Kafka cluster."""

from streamgraft_common.brokers import addresses
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_operator.context import Context
from streamgraft_operator.graph import GraphError, Topology
from streamgraft_operator.job.commands import report
from streamgraft_operator.job.topics import look, reads
from streamgraft_operator.kafka.client import KafkaUnavailable
from streamgraft_operator.kafka.topics import OTHER_KAFKA
from streamgraft_operator.kit.parsed import job_status


async def check_brokers(context: Context, job: Object, topology: Topology) -> None:
    """Raise GraphError if the brokers of a job that runs became those of another Kafka cluster.

    Positions are of one cluster: in another one records would be skipped, and nobody would notice.
    Raises KafkaUnavailable, and KafkaAwaited.
    """
    status, servers = job_status(job), context.servers_of(job)
    made = status.made_in_kafka
    if made is None or not made.servers or not status.submitted_generation:
        return
    if addresses(servers) == addresses(made.servers) or not reads(topology, servers):
        return
    try:
        there = await look(context, job, await context.brokers_of(job))
    except KafkaUnavailable as error:
        raise KafkaUnavailable(
            f"it is not known yet whether {servers} is the job's Kafka cluster"
            f" {made.cluster_id}, as {made.servers} is: {error}"
        ) from error
    if there.id != made.cluster_id:
        raise GraphError(
            f"{servers} is the Kafka cluster {there.id}, and the job's topics and positions are in"
            f" {made.cluster_id} at {made.servers}, which would not be found there; to move it,"
            " take a savepoint, cancel the job, and submit it with these brokers and"
            f" spec.savepoint.name; {OTHER_KAFKA}"
        )
    # The edit is not looked at yet: that it was is said when it is accepted.
    await report(
        context.write.jobs,
        key_of(job),
        [],
        status.observed_generation,
        made_in_kafka=made.model_copy(update={"servers": servers}),
    )
