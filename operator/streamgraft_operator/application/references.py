"""What settings of PEs name and someone else has to make: secrets and volume claims.

Whether they exist is asked for by name, when it matters: the operator may read no list of secrets.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from weakref import WeakValueDictionary

from streamgraft_common.kinds import PERSISTENT_VOLUME_CLAIM, SECRET, Kind
from streamgraft_common.kube import KubeClient
from streamgraft_common.resources import CheckpointRepository, PodSettings, TransportSecurity

FRESH_SECONDS = 2.0
"""For how long an answer is used again, since many PEs of a job ask the same."""
LOOK_AGAIN_SECONDS = 3.0
"""What is missing announces itself by no watch when it appears."""


@dataclass(frozen=True)
class Reference:
    """An object that a setting names."""

    resource: Kind
    name: str
    setting: str

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.name} ({self.setting})"


def references(
    settings: PodSettings,
    repository: CheckpointRepository | None,
    security: TransportSecurity,
) -> Iterator[Reference]:
    """Yield what the settings name."""
    for secret, setting in (
        (settings.image_pull_secret, "imagePullSecret"),
        (settings.app_properties_secret, "appPropertiesSecret"),
        (settings.restricted_properties_secret, "restrictedPropertiesSecret"),
    ):
        if secret:
            yield Reference(SECRET, secret, setting)
    if security.kafka_secret:
        yield Reference(SECRET, security.kafka_secret, "transportSecurity.kafkaSecret")
    if claim := settings.data_volume_claim:
        yield Reference(PERSISTENT_VOLUME_CLAIM, claim.name, "dataVolumeClaim")
    if repository:
        yield from _of_repository(repository)


def _of_repository(repository: CheckpointRepository) -> Iterator[Reference]:
    for files, setting in ((repository.file_system, "fileSystem"), (repository.copies, "copies")):
        if files:
            at = f"checkpointRepository.{setting}.volumeClaim"
            yield Reference(PERSISTENT_VOLUME_CLAIM, files.volume_claim.name, at)
    if repository.s3 and repository.s3.secret:
        yield Reference(SECRET, repository.s3.secret, "checkpointRepository.s3.secret")


class References:
    """Looks up whether objects exist."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._answers: dict[str, tuple[bool, float]] = {}
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def missing(self, namespace: str, wanted: Iterable[Reference]) -> tuple[Reference, ...]:
        """Return those that do not exist."""
        return tuple([item for item in wanted if not await self._exists(namespace, item)])

    async def _exists(self, namespace: str, reference: Reference) -> bool:
        path = reference.resource.path(namespace, reference.name)
        async with self._asking.setdefault(path, asyncio.Lock()):
            exists, at = self._answers.get(path, (False, -FRESH_SECONDS))
            if time.monotonic() >= at + FRESH_SECONDS:
                exists = await self._client.find(path) is not None
                self._answers[path] = exists, time.monotonic()
            return exists
