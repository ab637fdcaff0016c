"""Repositories: copies of checkpoints outside of the volume that the checkpoints are on."""

from streamgraft_common.repositories.collection import Collector, Unreadable
from streamgraft_common.repositories.opening import open_store
from streamgraft_common.repositories.store import (
    Credentials,
    Missing,
    RepositoryUnavailable,
    Store,
    Stored,
)

__all__ = [
    "Collector",
    "Credentials",
    "Missing",
    "RepositoryUnavailable",
    "Store",
    "Stored",
    "Unreadable",
    "open_store",
]
