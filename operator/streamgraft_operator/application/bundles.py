"""The bundles of jobs: fetched into a ConfigMap where the source is far, and read.

What is fetched is stored in a ConfigMap of the job before anything is planned with it. So all pods
run the very bytes that were planned, need neither network nor credentials for the source, and start
again while the source is away.
"""

import asyncio
import base64
import binascii
import stat
from collections import OrderedDict
from functools import partial
from pathlib import Path

from streamgraft_common import names
from streamgraft_common.bundle import (
    LARGEST_CONTENT_BYTES,
    Bundle,
    BundleCorrupt,
    BundleError,
    read_bundle,
)
from streamgraft_common.conditions import BUNDLE_AWAITED, BUNDLE_MISSING
from streamgraft_common.kinds import CONFIG_MAP, SECRET
from streamgraft_common.kube import KubeClient, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import BundleSource
from streamgraft_operator.application.fetching import fetch
from streamgraft_operator.application.sources import Credentials, FetchFailed, Networks
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.config_maps import replace_config_map
from streamgraft_operator.kit.coordinators import Coordinators
from streamgraft_operator.kit.external_calls import ExternalCalls, UnderWay
from streamgraft_operator.kit.parsed import job_spec
from streamgraft_operator.kit.taken import check_name
from streamgraft_operator.kit.volume import Volume
from streamgraft_operator.manifests.metadata import Owner, digest, metadata

CACHED = 64
FILE_PURPOSE = "bundle file"
"""Of calls to the volume: a file of a bundle is looked at."""
LONGEST_PAUSE_SECONDS = 300.0
"""Between two attempts to fetch a bundle."""


class BundleMissing(BundleError):
    """There is no such ConfigMap, key, file or version of the bundle (yet)."""

    reason = BUNDLE_MISSING


class BundleAwaited(BundleError):
    """The volume that the bundle is on has not answered yet."""

    reason = BUNDLE_AWAITED


class BundleMismatch(BundleError):
    """The bundle holds another application than the job names."""

    reason = "BundleMismatch"


class Bundles:
    """Fetches and reads bundles."""

    def __init__(
        self,
        client: KubeClient,
        caches: Caches,
        write: Coordinators,
        external_calls: ExternalCalls,
        volume: Volume,
        networks: Networks,
    ) -> None:
        self._client = client
        self._caches = caches
        self._write = write
        self._external = external_calls
        self._volume = volume
        self._networks = networks
        self._read: OrderedDict[tuple[str, ...], Bundle] = OrderedDict()
        self._caught_up: dict[Key, tuple[str, int]] = {}

    async def refresh(self, owner: Owner, source: BundleSource, generation: int) -> None:
        """Fetch the bundle into the job's ConfigMap if the pull policy says so.

        `generation` is that of the Job. Raises BundleError, NameTaken, or UnderWay.
        """
        if not source.fetched:
            return
        address = source.model_dump(include={"url", "git", "secret"}, mode="json")
        always = source.pull_policy == "Always"
        wanted = digest([address, generation if always else None])
        key = owner.namespace, names.fetched_config_map(owner.name)

        def is_fetched(item: Object) -> bool:
            found: dict[str, str] = item["metadata"].get("annotations", {})
            return found.get(names.ANNOTATION_SOURCE) == wanted

        have = self._caches.config_maps.get(key)
        check_name("ConfigMap", have, owner.name, owner.uid)
        if have and is_fetched(have):
            return
        credentials = await self._credentials(owner.namespace, source.secret)
        data = await self._external.ask(
            (owner.namespace, owner.name),
            "bundle",
            digest([wanted, repr(credentials)]),
            lambda: fetch(source, credentials, self._networks),
            longest_pause_seconds=LONGEST_PAUSE_SECONDS,
        )
        manifest = _fetched(owner, data, wanted)
        await replace_config_map(self._caches, self._write, manifest, is_fetched)

    async def caught_up(self, job: Object, source: BundleSource) -> bool:
        """Return whether the bundle's ConfigMap is known as it was when the Job was written.

        Users write the bundle, then the Job, but watches may show them in the other order. The old
        bundle would then fix what can't change later, such as a region's key groups.
        """
        key = key_of(job)
        version = job["metadata"]["uid"], job["metadata"]["generation"]
        place = source.mounted(key[1])
        if source.digest is not None:
            return True  # with another bundle the job waits anyway
        if place is None or self._caught_up.get(key) == version:
            return True
        there = await self._client.find(CONFIG_MAP.path(key[0], place.name))
        known = self._caches.config_maps.get((key[0], place.name))
        if (there and _version(there)) != (known and _version(known)):
            return False
        self._caught_up[key] = version
        return True

    async def read(self, job: Object, source: BundleSource) -> Bundle:
        """Return the bundle of a Job. Raises BundleError."""
        namespace, name = key_of(job)
        if place := source.mounted(name):
            bundle = await self._from_config_map(namespace, place.name, place.key)
        else:
            bundle = await self._from_volume(job, source.file or "")
        if source.digest not in (None, bundle.digest):
            raise BundleMissing(
                f"the bundle that is there has the sha256 {bundle.digest}, and not"
                f" {source.digest}: upload that one (`streamgraft submit` does), the job goes on"
                " by itself then; or correct bundle.digest"
            )
        if source.name not in (None, bundle.adl.name):
            raise BundleMismatch(
                f"the bundle holds the application {bundle.adl.name}, not {source.name}: correct"
                " bundle.name, or where the bundle comes from"
            )
        return bundle

    def exists(self, namespace: str, job: str, source: BundleSource) -> bool:
        """Return whether a pod could mount the bundle."""
        place = source.mounted(job)
        return not place or self._caches.config_maps.get((namespace, place.name)) is not None

    def users_of(self, config_map: Key) -> list[Key]:
        """Return the jobs whose bundle is in this ConfigMap."""
        namespace, name = config_map
        return [
            key_of(job)
            for job in self._caches.jobs.items()
            if job["metadata"]["namespace"] == namespace
            and (place := job_spec(job).bundle.config_map)
            and place.name == name
        ]

    async def _credentials(self, namespace: str, secret: str | None) -> Credentials | None:
        if secret is None:
            return None
        try:
            item = await self._client.get(SECRET.path(namespace, secret))
        except NotFound as error:
            raise FetchFailed(
                f"there is no Secret {secret} in namespace {namespace}: create it, the job goes on"
                " by itself then"
            ) from error
        return Credentials.of(secret, item.get("data", {}))

    async def _from_volume(self, job: Object, file: str) -> Bundle:
        work = partial(self._bundle_or_error, Path(file))
        try:
            found = await self._volume.ask(job, FILE_PURPOSE, work, wanted=file)
        except UnderWay:
            raise BundleAwaited(
                f"the bundle is being read: the volume that {file} is on has not answered yet"
            ) from None
        if isinstance(found, BundleError):
            raise found
        return found

    def _bundle_or_error(self, path: Path) -> Bundle | BundleError:
        """An error is an answer, too: who looks again reads the file again, without a pause."""
        try:
            return self._from_file(path)
        except BundleError as error:
            return error.with_traceback(None)

    def _from_file(self, path: Path) -> Bundle:
        try:
            state = path.stat()
            if not stat.S_ISREG(state.st_mode) or state.st_size > LARGEST_CONTENT_BYTES:
                raise BundleCorrupt(
                    f"{path} is no regular file of at most {LARGEST_CONTENT_BYTES >> 20} MiB: name"
                    " the bundle that `streamgraft build` made"
                )
            version = (str(path), str(state.st_mtime_ns), str(state.st_size))
            return self._read.get(version) or self._keep(version, read_bundle(path.read_bytes()))
        except OSError as error:
            raise BundleMissing(
                f"the bundle can't be read: {error.strerror or error} ({path}); operator and PEs"
                " need the same path on a shared volume"
            ) from error

    async def _from_config_map(self, namespace: str, name: str, data_key: str) -> Bundle:
        missing = BundleMissing(
            f"there is no ConfigMap {name} in namespace {namespace}: upload the bundle"
            " (`streamgraft submit` does), and the job goes on by itself"
        )
        known = self._caches.config_maps.get((namespace, name))
        if known is None:
            raise missing
        version = (*_version(known), data_key)
        if bundle := self._read.get(version):
            return bundle
        try:
            item = await self._client.get(CONFIG_MAP.path(namespace, name))
        except NotFound as error:
            raise missing from error
        data = item.get("binaryData", {}).get(data_key)
        if data is None:
            have = ", ".join(sorted({*item.get("binaryData", {}), *item.get("data", {})})) or "none"
            raise BundleMissing(
                f"ConfigMap {name} has no key {data_key} in binaryData (it has: {have})"
            )
        try:
            content = base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise BundleCorrupt(f"key {data_key} of ConfigMap {name}: {error}") from error
        return self._keep(version, await asyncio.to_thread(read_bundle, content))

    def _keep(self, version: tuple[str, ...], bundle: Bundle) -> Bundle:
        self._read[version] = bundle
        if len(self._read) > CACHED:
            self._read.popitem(last=False)
        return bundle


def _version(item: Object) -> tuple[str, str]:
    return item["metadata"]["uid"], item["metadata"]["resourceVersion"]


def _fetched(owner: Owner, data: bytes, source_id: str) -> Object:
    described = metadata(owner, names.fetched_config_map(owner.name), {})
    return {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {**described, "annotations": {names.ANNOTATION_SOURCE: source_id}},
        "binaryData": {names.BUNDLE_KEY: base64.b64encode(data).decode()},
    }
