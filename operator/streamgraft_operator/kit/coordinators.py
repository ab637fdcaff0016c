"""All coordinators."""

from streamgraft_common.kinds import AUTOSCALER, CONFIG_MAP, POD, SERVICE
from streamgraft_common.kube import KubeClient
from streamgraft_common.resources import (
    CONSISTENT_REGION,
    EXPORT,
    HOST_POOL,
    IMPORT,
    JOB,
    PARALLEL_REGION,
    PROCESSING_ELEMENT,
    SAVEPOINT,
    TEST_SUITE,
)
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.coordinator import Coordinator


class Coordinators:
    """One writer per kind."""

    def __init__(self, client: KubeClient, caches: Caches) -> None:
        self.jobs = Coordinator(client, JOB, caches.jobs)
        self.processing_elements = Coordinator(
            client, PROCESSING_ELEMENT, caches.processing_elements
        )
        self.regions = Coordinator(client, PARALLEL_REGION, caches.regions)
        self.host_pools = Coordinator(client, HOST_POOL, caches.host_pools)
        self.savepoints = Coordinator(client, SAVEPOINT, caches.savepoints)
        self.consistent_regions = Coordinator(client, CONSISTENT_REGION, caches.consistent_regions)
        self.pods = Coordinator(client, POD, caches.pods)
        self.config_maps = Coordinator(client, CONFIG_MAP, caches.config_maps)
        self.services = Coordinator(client, SERVICE, caches.services)
        self.exports = Coordinator(client, EXPORT, caches.exports)
        self.imports = Coordinator(client, IMPORT, caches.imports)
        self.test_suites = Coordinator(client, TEST_SUITE, caches.test_suites)
        self.autoscalers = Coordinator(client, AUTOSCALER, caches.autoscalers)
