"""The kinds of the API group: one frozen pydantic model per kind is the only truth."""

from streamgraft_common.resources.base import Resources
from streamgraft_common.resources.bundle_source import BundleSource, GitBundle
from streamgraft_common.resources.consistent_region import (
    CONSISTENT_REGION,
    ConsistentRegionSpec,
    ConsistentRegionStatus,
    Cut,
)
from streamgraft_common.resources.host_pool import HOST_POOL, HostPoolSpec, HostPoolStatus
from streamgraft_common.resources.job import (
    JOB,
    Fusion,
    InitialState,
    JobSpec,
    JobStatus,
    MadeInKafka,
    RegionOverride,
    SourceTopic,
    Threading,
    TransportSecurity,
)
from streamgraft_common.resources.parallel_region import (
    PARALLEL_REGION,
    AvoidedWidth,
    ParallelRegionSpec,
    ParallelRegionStatus,
    RegionStage,
    WidthChange,
)
from streamgraft_common.resources.processing_element import (
    PROCESSING_ELEMENT,
    LostRecords,
    ProcessingElementSpec,
    ProcessingElementStatus,
    Release,
    RuntimeStatus,
    Saved,
    Saving,
    ShardStatus,
    Stopped,
)
from streamgraft_common.resources.savepoint import (
    SAVEPOINT,
    SavedInput,
    SavedStage,
    SavedState,
    SavepointSpec,
    SavepointStatus,
)
from streamgraft_common.resources.settings import (
    CheckpointRepository,
    PodSettings,
    ProcessingElementSettings,
    TraceLevel,
    VolumeClaim,
)
from streamgraft_common.resources.streams import EXPORT, IMPORT
from streamgraft_common.resources.suite import (
    TEST_SUITE,
    Probe,
    Scenario,
    ScenarioRun,
    Step,
    SuiteSpec,
    SuiteStatus,
    Target,
)

KINDS = (
    JOB,
    PROCESSING_ELEMENT,
    PARALLEL_REGION,
    HOST_POOL,
    SAVEPOINT,
    IMPORT,
    EXPORT,
    CONSISTENT_REGION,
    TEST_SUITE,
)

SCHEMA_ONLY = (IMPORT, EXPORT)
"""Kinds that the operator does nothing with but to say so in a condition."""

__all__ = [
    "CONSISTENT_REGION",
    "EXPORT",
    "HOST_POOL",
    "IMPORT",
    "JOB",
    "KINDS",
    "PARALLEL_REGION",
    "PROCESSING_ELEMENT",
    "SAVEPOINT",
    "SCHEMA_ONLY",
    "TEST_SUITE",
    "AvoidedWidth",
    "BundleSource",
    "CheckpointRepository",
    "ConsistentRegionSpec",
    "ConsistentRegionStatus",
    "Cut",
    "Fusion",
    "GitBundle",
    "HostPoolSpec",
    "HostPoolStatus",
    "InitialState",
    "JobSpec",
    "JobStatus",
    "LostRecords",
    "MadeInKafka",
    "ParallelRegionSpec",
    "ParallelRegionStatus",
    "PodSettings",
    "Probe",
    "ProcessingElementSettings",
    "ProcessingElementSpec",
    "ProcessingElementStatus",
    "RegionOverride",
    "RegionStage",
    "Release",
    "Resources",
    "RuntimeStatus",
    "Saved",
    "SavedInput",
    "SavedStage",
    "SavedState",
    "SavepointSpec",
    "SavepointStatus",
    "Saving",
    "Scenario",
    "ScenarioRun",
    "ShardStatus",
    "SourceTopic",
    "Step",
    "Stopped",
    "SuiteSpec",
    "SuiteStatus",
    "Target",
    "Threading",
    "TraceLevel",
    "TransportSecurity",
    "VolumeClaim",
    "WidthChange",
]
