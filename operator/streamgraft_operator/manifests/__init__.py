"""Every object that the operator creates, as pure functions from the topology to a plain dict."""

from streamgraft_operator.manifests.access import role_binding, service_account
from streamgraft_operator.manifests.config_map import (
    checkpoints_of,
    job_config_map,
    pe_config_map,
    stages_of,
)
from streamgraft_operator.manifests.consistent_region import (
    consistent_region,
    cut_savepoint,
    rollback_savepoint,
)
from streamgraft_operator.manifests.host_pool import host_pool
from streamgraft_operator.manifests.pod import (
    adoption,
    check_pods,
    checkpoint_volume,
    is_generic,
    pod,
    return_to_pool,
    settings_id,
    warm_pod,
)
from streamgraft_operator.manifests.pod_security import PodForbidden
from streamgraft_operator.manifests.processing_element import from_job, processing_element
from streamgraft_operator.manifests.region import (
    parallel_region,
    region_content_id,
    width_savepoint,
)
from streamgraft_operator.manifests.service import declared_service, service
from streamgraft_operator.manifests.suite_pod import junit_config_map, suite_pod

__all__ = [
    "PodForbidden",
    "adoption",
    "check_pods",
    "checkpoint_volume",
    "checkpoints_of",
    "consistent_region",
    "cut_savepoint",
    "declared_service",
    "from_job",
    "host_pool",
    "is_generic",
    "job_config_map",
    "junit_config_map",
    "parallel_region",
    "pe_config_map",
    "pod",
    "processing_element",
    "region_content_id",
    "return_to_pool",
    "role_binding",
    "rollback_savepoint",
    "service",
    "service_account",
    "settings_id",
    "stages_of",
    "suite_pod",
    "warm_pod",
    "width_savepoint",
]
