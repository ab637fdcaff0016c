"""What a PE and the operator owe each other: which shards run where, and what is said of them.

It knows nothing of Spark, Kafka or threads. A pod runs it over a driver, and the simulation runs
the very same code over checkpoints, records and time of its own (docs/develop/simulation.md).
"""

from streamgraft_pe_runtime.protocol.processing_element import Pod, ProcessingElement
from streamgraft_pe_runtime.protocol.work import (
    CopyDamaged,
    Left,
    Load,
    NotCommitted,
    Query,
    Stage,
    Telemetry,
    Work,
)

__all__ = [
    "CopyDamaged",
    "Left",
    "Load",
    "NotCommitted",
    "Pod",
    "ProcessingElement",
    "Query",
    "Stage",
    "Telemetry",
    "Work",
]
