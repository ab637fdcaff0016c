"""Savepoints that nobody needs any more, and the blobs that go with them."""

from collections.abc import Iterable

from pydantic import ValidationError

from streamgraft_common.repositories import manifest
from streamgraft_common.repositories.manifest import Manifest
from streamgraft_common.repositories.store import Missing, Store


class Unreadable(Exception):
    """A manifest is not one: what it names is not known, so no blob may go. Says which."""


class Collector:
    """Removes what is not needed of a namespace. What manifests name is remembered."""

    def __init__(self, store: Store, namespace: str) -> None:
        self._store = store
        self._namespace = namespace
        self._named: dict[str, frozenset[str]] = {}
        """Key of a manifest, which never changes → names of blobs."""

    def remove(self, savepoint: str, uid: str) -> None:
        """Mark a savepoint as one that nobody needs. Raises RepositoryUnavailable."""
        self._store.create(manifest.removed_key(self._namespace, savepoint, uid), b"")

    def collect(self, now: float) -> int:
        """Remove what has been marked for long, and blobs; return how many blobs.

        Blobs are listed before manifests, so that none is missed that a new manifest names.
        Raises RepositoryUnavailable or Unreadable.
        """
        there = self._store.keys(manifest.blobs(self._namespace), complete=True)
        entries = self._store.keys(manifest.savepoints(self._namespace), complete=True)
        found = manifest.read(self._namespace, entries)
        over = found.over(now)
        kept = [share for share in found.shares if (share.savepoint, share.uid) not in over]
        named = self._names(share.key(self._namespace) for share in kept)
        gone = [
            *(share.key(self._namespace) for share in found.shares if share not in set(kept)),
            *(
                manifest.stage_key(self._namespace, *stage)
                for stage in found.stages
                if stage[:2] in over
            ),
        ]
        self._store.delete(gone)
        garbage = manifest.garbage(there, named, now)
        self._store.delete(garbage)
        self._store.delete([manifest.removed_key(self._namespace, *item) for item in over])
        return len(garbage)

    def _names(self, keys: Iterable[str]) -> set[str]:
        known = {key: self._named.get(key) or self._read(key) for key in keys}
        self._named = known
        return {name for names in known.values() for name in names}

    def _read(self, key: str) -> frozenset[str]:
        try:
            found = Manifest.model_validate_json(self._store.get(key))
        except Missing:  # another one collects, too
            return frozenset()
        except ValidationError as error:
            raise Unreadable(f"{key} is damaged: delete its savepoint, then this key") from error
        return frozenset(piece.name for piece in found.blobs())
