"""Savepoints that are kept in a repository besides: what happens there when one is deleted.

A savepoint is marked in its repository when its resource goes; now and then what was marked is
collected, with the blobs that nothing names any more.
"""

import asyncio
import base64
import binascii
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from streamgraft_common.kinds import SECRET
from streamgraft_common.kube import ApiError, KubeClient, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_common.repositories import (
    Collector,
    RepositoryUnavailable,
    Unreadable,
    open_store,
)
from streamgraft_common.repositories.manifest import COLLECT_SECONDS, GRACE_SECONDS
from streamgraft_common.resources import CheckpointRepository, JobSpec, PodSettings
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_operator.kit.external_calls import ExternalCalls, UnderWay
from streamgraft_operator.kit.parsed import savepoint_spec, savepoint_status
from streamgraft_operator.kit.remembered import Remembered
from streamgraft_operator.manifests.metadata import digest
from streamgraft_operator.manifests.pod_settings import repository_secret
from streamgraft_operator.settings import Settings

log = logging.getLogger(__name__)

LATER_SECONDS = GRACE_SECONDS + 60.0
"""From the last savepoint that is marked to the collection that finds it."""
PATIENCE_SECONDS = 600.0
"""For so long a savepoint that is deleted waits for its repository."""
REMEMBERED_SECONDS = 600.0
"""From one look at a Secret that is needed later to the next one: it may be rotated."""
_PURPOSE = "repository"
_THREADS = 16

Place = tuple[str, str]
"""Namespace, and hash of a repository's settings and credentials."""


class Repositories:
    """The repositories in which savepoints are that are being deleted."""

    def __init__(
        self, client: KubeClient, external_calls: ExternalCalls, settings: Settings
    ) -> None:
        self._client = client
        self._settings = settings
        self._external = external_calls
        self._collectors: dict[Place, Collector] = {}
        self._collected: dict[Place, float] = {}
        self._collecting: set[asyncio.Task[None]] = set()
        self._later: dict[Place, asyncio.TimerHandle] = {}
        self._remembered: Remembered[tuple[float, Mapping[str, str]]] = Remembered()
        # A repository that never answers must not take the threads that everything else needs.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="repository")

    async def remove(self, item: Object, *, others_come: bool = False) -> str:
        """Mark a savepoint as one that nobody needs; return why that can't be, '' if it is done.

        `others_come`: whether it is a cut of a consistent region that goes on. Raises UnderWay
        while the repository may still answer.
        """
        settings, repository = self._repository_of(item)
        spec = savepoint_spec(item)
        kept = spec.repository and spec.rolls_back_to is None
        if repository is None or not repository.keeps_copies or not kept:
            return ""
        namespace, name = key_of(item)
        uid = item["metadata"]["uid"]
        if repository.copies:  # processing elements see that volume, and do it with the next cut
            unseen = "the operator does not see the volume of checkpointRepository.copies"
            return "" if others_come else unseen
        try:
            credentials = await self._credentials(namespace, settings, repository)
        except (NotFound, ValueError) as error:
            return f"the credentials of its repository are gone: {error}"
        place = namespace, digest([repository.to_wire(), *sorted(credentials.items())])
        try:
            if place not in self._collectors:
                store = open_store(repository, namespace, credentials, Path("/"))
                assert store is not None
                self._collectors[place] = Collector(store, namespace)
            await self._external.ask(
                key_of(item),
                _PURPOSE,
                uid,
                lambda: self._run(self._collectors[place].remove, name, uid),
                longest_pause_seconds=30.0,
            )
        except ValueError as error:
            return str(error)
        except RepositoryUnavailable as error:
            if _seconds_since(item) < PATIENCE_SECONDS:
                raise UnderWay from error
            return str(error)
        except UnderWay:  # one that answers bit by bit is never done
            if _seconds_since(item) < 2 * PATIENCE_SECONDS:
                raise
            return "its repository has not answered"
        self._collect_soon_and_later(place)
        return ""

    async def remember(self, item: Object) -> None:
        """Read now and then what the repository of a savepoint wants to be shown: once that is to
        go the Secret may be gone."""
        settings, repository = self._repository_of(item)
        if repository is None or not repository.keeps_copies:
            return
        namespace, _ = key_of(item)
        known = self._remembered.get((namespace, repository_secret(settings, repository) or ""))
        if known is None or time.monotonic() >= known[0] + REMEMBERED_SECONDS:
            with suppress(ApiError, ValueError):  # whoever needs it says what is wrong
                await self._credentials(namespace, settings, repository)

    def forget(self, item: Object) -> None:
        """Drop what is known of a savepoint that is gone."""
        self._external.forget(key_of(item), _PURPOSE)

    def _repository_of(self, item: Object) -> tuple[PodSettings, CheckpointRepository | None]:
        """Return the savepoint's repository as it was noted when it was taken, and the settings of
        its job then."""
        status = savepoint_status(item)
        try:
            job = JobSpec.model_validate(status.job_spec)
        except ValidationError:  # it never came to a copy
            return PodSettings(), None
        if status.repository is not None:
            return job.processing_element, status.repository
        pe = self._settings.completed(job).processing_element  # of a release that noted none
        return pe, pe.checkpoint_repository

    def _collect_soon_and_later(self, place: Place) -> None:
        """Collect garbage beside everything else, unless that was done lately; and again when what
        was marked just now may go."""
        now = time.monotonic()
        if now >= self._collected.get(place, -COLLECT_SECONDS) + COLLECT_SECONDS:
            self._collect(place)
        if place in self._later:
            self._later[place].cancel()
        loop = asyncio.get_running_loop()
        self._later[place] = loop.call_later(LATER_SECONDS, self._collect, place)

    def _collect(self, place: Place) -> None:
        self._collected[place] = time.monotonic()
        collecting = self._run(_collected, self._collectors[place], place[0])
        task = asyncio.create_task(collecting, name=f"collecting-{place[0]}")
        self._collecting.add(task)
        task.add_done_callback(self._collecting.discard)

    async def _run(self, call: Callable[..., None], *arguments: object) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, call, *arguments)

    async def _credentials(
        self, namespace: str, settings: PodSettings, repository: CheckpointRepository
    ) -> dict[str, str]:
        """Return what the repository wants to be shown, or wanted before its Secret went. Raises
        NotFound or ValueError."""
        name = repository_secret(settings, repository)
        if name is None:
            return {}
        try:
            secret = await self._client.get(SECRET.path(namespace, name))
        except NotFound:
            if (known := self._remembered.get((namespace, name))) is None:
                raise
            return dict(known[1])
        credentials = dict(_texts(name, (secret.get("data") or {}).items()))
        self._remembered.note((namespace, name), (time.monotonic(), credentials))
        return credentials


def _collected(collector: Collector, namespace: str) -> None:
    try:
        count = collector.collect(time.time())
    except (RepositoryUnavailable, Unreadable) as error:
        log.warning("no garbage was collected in the repository of %s: %s", namespace, error)
    except Exception:  # nobody waits for the task
        log.exception("no garbage was collected in the repository of %s", namespace)
    else:
        log.info("%d blobs were garbage in the repository of %s", count, namespace)


def _texts(name: str, data: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    for key, value in data:
        try:
            yield key, base64.b64decode(value, validate=True).decode().strip()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ValueError(f"key {key} of Secret {name} is no text") from error


def _seconds_since(item: Object) -> float:
    """Return how long ago an object was deleted."""
    return time.time() - from_rfc3339(item["metadata"]["deletionTimestamp"])
