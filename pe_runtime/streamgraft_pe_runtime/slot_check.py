"""Whether a plan in real-time mode finds a slot for each partition that it reads."""

from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_pe_runtime import real_time
from streamgraft_pe_runtime.brokers import Brokers
from streamgraft_pe_runtime.kafka_clients import Clients
from streamgraft_pe_runtime.plan import Plan
from streamgraft_pe_runtime.settings import consumer_group


class NotEnoughSlots(Exception):
    """Partitions would starve in real-time mode; the message says what to do."""


def check_slots(plan: Plan, metadata: PeMetadata, clients: Clients) -> None:
    """Raise NotEnoughSlots if partitions would starve in a real-time plan. Asks the brokers."""
    counts: dict[tuple[str, str], int] = {}
    for port in metadata.inputs:
        if port.partitions is None:
            servers = port.bootstrap_servers
            if servers not in clients:
                raise NotEnoughSlots(
                    f"real-time mode counts the partitions of {port.topic}, whose brokers ask for"
                    " what only Java's clients are told (the log says what): leave out real_time"
                )
            brokers = Brokers(servers, consumer_group(metadata), clients[servers])
            try:
                count = len(brokers.partitions(port.topic))
            finally:
                brokers.close()
            if not count:
                raise NotEnoughSlots(
                    f"real-time mode counts the partitions of {port.topic}, and none can be seen at"
                    f" {servers}: there is no such topic, or its user may not describe it (of"
                    " several sources there, one's user is asked)"
                )
            counts[servers, port.topic] = count
    slots = plan.frame.sparkSession.sparkContext.defaultParallelism
    if reason := real_time.starvation(metadata, counts, plan.scans, slots):
        raise NotEnoughSlots(reason)
