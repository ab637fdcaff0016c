"""All coordinators."""

from streamgraft_common.kube import KubeClient
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.coordinator import Coordinator
from streamgraft_operator.kit.kinds import (
    AUTOSCALERS,
    CONFIG_MAPS,
    HOST_POOLS,
    JOBS,
    PODS,
    PROCESSING_ELEMENTS,
    REGIONS,
    SAVEPOINTS,
    SERVICES,
)


class Coordinators:
    """One writer per kind."""

    def __init__(self, client: KubeClient, caches: Caches) -> None:
        self.jobs = Coordinator(client, JOBS, caches.jobs)
        self.processing_elements = Coordinator(
            client, PROCESSING_ELEMENTS, caches.processing_elements
        )
        self.regions = Coordinator(client, REGIONS, caches.regions)
        self.host_pools = Coordinator(client, HOST_POOLS, caches.host_pools)
        self.savepoints = Coordinator(client, SAVEPOINTS, caches.savepoints)
        self.pods = Coordinator(client, PODS, caches.pods)
        self.config_maps = Coordinator(client, CONFIG_MAPS, caches.config_maps)
        self.services = Coordinator(client, SERVICES, caches.services)
        self.autoscalers = Coordinator(client, AUTOSCALERS, caches.autoscalers)
