"""From a Job to its topology: fetch the bundle, check the parameters, plan.

Nothing is kept but caches: the topology of a job is computed whenever it is needed.
"""

import asyncio
import base64
import binascii
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from streamgraft_common import names
from streamgraft_common.bundle import Bundle, BundleCorrupt, BundleError, read_bundle
from streamgraft_common.kube import KubeClient, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import JobSpec
from streamgraft_operator.caches import Caches
from streamgraft_operator.conductors.job import BUNDLE_MISSING
from streamgraft_operator.graph import GraphError, JobContext, Topology, plan
from streamgraft_operator.kinds import CONFIG_MAPS
from streamgraft_operator.settings import Settings

CACHED = 64
_JOB_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


class BundleMissing(BundleError):
    """There is no such ConfigMap, key or file (yet)."""

    reason = BUNDLE_MISSING


@dataclass(frozen=True)
class Expansion:
    """A job's bundle and its plan for certain widths."""

    bundle: Bundle
    topology: Topology
    spec: JobSpec
    """The job's spec with settings of PEs as they are in the end: the job's image settings and
    each PE's share of the job's resources are in `processing_element`."""


_Id = TypeVar("_Id")
_Value = TypeVar("_Value")


class _Recent(OrderedDict[_Id, _Value]):
    """The values used last."""

    def keep(self, key: _Id, value: _Value) -> _Value:
        self[key] = value
        self.move_to_end(key)
        if len(self) > CACHED:
            self.popitem(last=False)
        return value


class Expander:
    """Expands jobs."""

    def __init__(self, client: KubeClient, caches: Caches, settings: Settings) -> None:
        self._client = client
        self._caches = caches
        self._settings = settings
        self._bundles: _Recent[tuple[str, ...], Bundle] = _Recent()
        self._topologies: _Recent[tuple[object, ...], Topology] = _Recent()

    async def expand(self, job: Object, widths: Mapping[str, int]) -> Expansion:
        """Return the plan of a job; `widths` by region name, absent ones as the job begins.

        Widths of regions that the application no longer has are ignored.

        Raises BundleError or GraphError; both say what to do.
        """
        spec = JobSpec.model_validate(job["spec"])
        _check_name(job["metadata"]["name"])
        bundle = await self._bundle(job["metadata"]["namespace"], spec)
        initial = {name: region.width for name, region in spec.regions.items() if region.width}
        known = {region.name for region in bundle.adl.regions}
        wanted = initial | {name: width for name, width in widths.items() if name in known}
        key = (
            job["metadata"]["uid"],
            job["metadata"].get("generation"),
            bundle.digest,
            tuple(sorted(wanted.items())),
        )
        topology = self._topologies.get(key)
        if topology is None:
            context = self._context(job, spec, bundle, initial)
            topology = plan(bundle.adl, context, wanted)
            self._topologies.keep(key, topology)
        return Expansion(bundle, topology, _resolved(spec, topology))

    def bundle_exists(self, namespace: str, spec: JobSpec) -> bool:
        """Return whether a pod could mount the bundle."""
        source = spec.bundle.config_map
        return not source or self._caches.config_maps.get((namespace, source.name)) is not None

    def users_of(self, config_map: Key) -> list[Key]:
        """Return the jobs whose bundle is in this ConfigMap."""
        namespace, name = config_map
        return [
            key_of(job)
            for job in self._caches.jobs.items()
            if job["metadata"]["namespace"] == namespace
            and (job["spec"]["bundle"].get("configMap") or {}).get("name") == name
        ]

    def _context(
        self, job: Object, spec: JobSpec, bundle: Bundle, first_widths: Mapping[str, int]
    ) -> JobContext:
        return JobContext(
            namespace=job["metadata"]["namespace"],
            job=job["metadata"]["name"],
            job_uid=job["metadata"]["uid"],
            bundle_digest=bundle.digest,
            bootstrap_servers=spec.bootstrap_servers or self._settings.bootstrap_servers,
            parameters=parameters(bundle, spec),
            fusion=spec.fusion,
            threading=spec.threading,
            settings=spec.processing_element,
            resources=spec.resources,
            first_widths=first_widths,
        )

    async def _bundle(self, namespace: str, spec: JobSpec) -> Bundle:
        if source := spec.bundle.config_map:
            return await self._from_config_map(namespace, source.name, source.key)
        return await asyncio.to_thread(self._from_file, Path(spec.bundle.file or ""))

    def _from_file(self, path: Path) -> Bundle:
        try:
            state = path.stat()
            version = (str(path), str(state.st_mtime_ns), str(state.st_size))
            return self._bundles.get(version) or self._bundles.keep(
                version, read_bundle(path.read_bytes())
            )
        except OSError as error:
            raise BundleMissing(
                f"the bundle can't be read: {error.strerror or error} ({path}); operator and PEs"
                " need the same path on a shared volume"
            ) from error

    async def _from_config_map(self, namespace: str, name: str, data_key: str) -> Bundle:
        missing = BundleMissing(
            f"there is no ConfigMap {name} in namespace {namespace}: upload the bundle"
            " (`streamgraft submit` does), the job goes on by itself then"
        )
        known = self._caches.config_maps.get((namespace, name))
        if known is None:
            raise missing
        version = (known["metadata"]["uid"], known["metadata"]["resourceVersion"], data_key)
        if bundle := self._bundles.get(version):
            return bundle
        try:
            item = await self._client.get(CONFIG_MAPS.path(namespace, name))
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
        bundle = await asyncio.to_thread(read_bundle, content)
        return self._bundles.keep(version, bundle)


def _resolved(spec: JobSpec, topology: Topology) -> JobSpec:
    given = topology.settings
    images = {
        name: getattr(given, name) or getattr(spec, name)
        for name in ("image", "image_pull_policy", "image_pull_secret")
    }
    return spec.model_copy(update={"processing_element": given.model_copy(update=images)})


def parameters(bundle: Bundle, spec: JobSpec) -> dict[str, str]:
    """Return the submission-time values. Raises GraphError for names the application lacks."""
    known = bundle.adl.parameters
    if unknown := sorted(spec.parameters.keys() - known.keys()):
        has = f"it has {', '.join(sorted(known))}" if known else "it has none"
        raise GraphError(f"the application has no parameter {', '.join(unknown)} ({has})")
    return {**known, **spec.parameters}


def _check_name(name: str) -> None:
    if len(name) > names.MAX_JOB_NAME or not _JOB_NAME.fullmatch(name):
        raise GraphError(
            f"job name {name!r} can't be used in names of topics and pods: choose at most"
            f" {names.MAX_JOB_NAME} lower-case letters, digits and '-', beginning with a letter"
        )


def job_of(caches: Caches, item: Object) -> Object | None:
    """Return the Job that an object of ours belongs to by its label, if it is there."""
    namespace, _ = key_of(item)
    name = item["metadata"].get("labels", {}).get(names.LABEL_JOB, "")
    return caches.jobs.get((namespace, name))
