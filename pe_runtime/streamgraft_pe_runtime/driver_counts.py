"""What a driver tells of its queries beside their own reports."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from streamgraft_common.pe_metadata import InputPort, PeMetadata
from streamgraft_pe_runtime.kafka_clients import Clients
from streamgraft_pe_runtime.losses import Gap


class DriverCounts(Protocol):
    """What a driver counts by itself, since its start."""

    def busy_seconds(self) -> float:
        """Return the time of all tasks, summed over slots."""

    def malformed(self) -> dict[tuple[str, str], int]:
        """Return how many malformed records were met, by source operator and topic."""

    def imported_topics(self, operator: str) -> Sequence[str]:
        """Return the topics that an import is connected to."""

    def ids_of(self, inputs: Sequence[InputPort]) -> Mapping[str, str]:
        """Return the ids of the topics that are read, by place."""

    def kafka_clients(self, metadata: PeMetadata) -> Clients:
        """Return what clients of a PE's brokers are told."""

    def is_cut(self) -> bool:
        """Return whether operators of the plan are in a consistent region."""

    def passed_over(self) -> Sequence[Gap]:
        """Return what imports went past, since the last call, that retention had deleted."""
