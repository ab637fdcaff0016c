"""The kinds of the API group: one frozen pydantic model per kind is the only truth."""

from streamgraft_common.resources.job import JOB, JobSpec, JobStatus
from streamgraft_common.resources.parallel_region import (
    PARALLEL_REGION,
    ParallelRegionSpec,
    ParallelRegionStatus,
    WidthChange,
)
from streamgraft_common.resources.processing_element import (
    PROCESSING_ELEMENT,
    ProcessingElementSpec,
    ProcessingElementStatus,
    Release,
    RuntimeStatus,
    ShardStatus,
)

KINDS = (JOB, PROCESSING_ELEMENT, PARALLEL_REGION)

__all__ = [
    "JOB",
    "KINDS",
    "PARALLEL_REGION",
    "PROCESSING_ELEMENT",
    "JobSpec",
    "JobStatus",
    "ParallelRegionSpec",
    "ParallelRegionStatus",
    "ProcessingElementSpec",
    "ProcessingElementStatus",
    "Release",
    "RuntimeStatus",
    "ShardStatus",
    "WidthChange",
]
