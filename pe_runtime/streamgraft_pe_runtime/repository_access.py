"""How a PE reaches the repository of its job: what its pod's environment names."""

from collections.abc import Mapping
from pathlib import Path

from streamgraft_common.encodings.registry_access import KEYS
from streamgraft_common.repositories import open_store
from streamgraft_pe_runtime import restricted
from streamgraft_pe_runtime.repository import Repository
from streamgraft_pe_runtime.settings import Settings
from streamgraft_pe_runtime.upkeep import Upkeep


def repository(settings: Settings) -> Repository | None:
    """Return the job's repository, if it has one. Raises ValueError about its Secret."""
    folder = settings.repository_secret
    shown = restricted.read(folder) if folder else {}
    store = open_store(settings.repository, settings.namespace, shown, settings.copies or Path("/"))
    if settings.repository is None or store is None:
        return None
    # The operator does not see a volume.
    upkeep = Upkeep(store, settings.namespace) if settings.repository.copies else None
    return Repository(store, settings.namespace, upkeep=upkeep)


def restricted_properties(settings: Settings) -> Mapping[str, str]:
    """Return the Spark settings among the restricted properties: not those of the repository
    or of a schema registry."""
    if settings.restricted_properties is None:
        return {}
    redis = settings.repository.redis if settings.repository else None
    others = (redis.restricted_property, redis.authority) if redis else ()
    return restricted.read(settings.restricted_properties, KEYS.union(filter(None, others)))
