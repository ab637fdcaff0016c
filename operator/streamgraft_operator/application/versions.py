"""What jobs run: the version of each that was accepted last, its spec and its application.

A Job's spec may be an edit that is refused, waits, or is looked at just now, and its bundle may be
another one by then, too. Whatever keeps a job running goes by what is noted here; only the job
controller looks at what is asked for, and notes it before it makes anything of it.
"""

import base64
import gzip
import io
import json
import logging
import zlib
from collections import OrderedDict
from dataclasses import dataclass

from streamgraft_common import names
from streamgraft_common.adl import Adl
from streamgraft_common.bundle import LARGEST_ADL_BYTES, Bundle
from streamgraft_common.kinds import CONFIG_MAP
from streamgraft_common.kube import KubeClient
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import JobSpec
from streamgraft_operator.graph.sizes import check_size
from streamgraft_operator.kit.caches import Caches
from streamgraft_operator.kit.config_maps import replace_config_map
from streamgraft_operator.kit.coordinators import Coordinators
from streamgraft_operator.kit.objects import content_of, is_owned_by
from streamgraft_operator.manifests.metadata import Owner, digest, metadata

log = logging.getLogger(__name__)

REMEMBERED = 256
"""Jobs whose version is not read again as long as it is the same."""

LARGEST_BYTES = 2 * LARGEST_ADL_BYTES
"""Of a version, unpacked. A tenant may write it: some hundred bytes of gzip can hold gigabytes."""

_DAMAGED = (
    ValueError,  # of JSON, base64 and models, too
    KeyError,
    TypeError,
    OSError,
    EOFError,
    zlib.error,
    RecursionError,
)


@dataclass(frozen=True)
class Version:
    """A version of a job."""

    generation: int
    """metadata.generation of the Job."""
    written: Object
    """The Job's spec as it was written."""
    spec: JobSpec
    """The same as a model."""
    image: str
    """Image of pods whose settings name none."""
    bundle: Bundle

    @property
    def id(self) -> tuple[int, str, str]:
        """What tells it from other versions of its job: a generation has one spec."""
        return self.generation, self.image, self.bundle.digest

    def to_json(self) -> bytes:
        """Return the form in which it is noted, compressed."""
        document = {
            "generation": self.generation,
            "spec": self.written,
            "image": self.image,
            "bundleDigest": self.bundle.digest,
            "adl": self.bundle.adl.model_dump(mode="json", by_alias=True),
        }
        return gzip.compress(json.dumps(document).encode(), mtime=0)

    @classmethod
    def from_json(cls, data: bytes) -> "Version":
        """Return a version as it was noted. Raises one of several errors for anything else."""
        with gzip.open(io.BytesIO(data)) as file:
            text = file.read(LARGEST_BYTES + 1)
        if len(text) > LARGEST_BYTES:
            raise ValueError(f"it unpacks to more than {LARGEST_BYTES >> 20} MiB")
        document = json.loads(text)
        return cls(
            generation=int(document["generation"]),
            written=document["spec"],
            spec=JobSpec.model_validate(document["spec"]),
            image=str(document["image"]),
            bundle=Bundle(Adl.model_validate(document["adl"]), str(document["bundleDigest"])),
        )


class Versions:
    """Notes versions in a ConfigMap of each job, and reads them."""

    def __init__(self, client: KubeClient, caches: Caches, write: Coordinators) -> None:
        self._client = client
        self._caches = caches
        self._write = write
        self._read: OrderedDict[Key, tuple[tuple[str, str], Version | None]] = OrderedDict()

    async def accepted(self, job: Object) -> Version | None:
        """Return the version that was accepted last; None if none is noted.

        So it is before a job is first accepted, and for jobs of operators that noted none.
        """
        key = _key(job)
        known = self._caches.config_maps.get(key)
        if known is None or not is_owned_by(known, job["metadata"]["uid"]):
            return None
        state = _state(known)
        read = self._read.get(key)
        if read is not None and read[0] == state:
            return read[1]
        item = await self._client.find(CONFIG_MAP.path(*key))
        return self._keep(key, state, _version(item) if item else None)

    async def running(self, job: Object) -> Object:
        """Return a Job with the spec that was accepted last."""
        version = await self.accepted(job)
        if version is None or version.generation == job["metadata"]["generation"]:
            return job
        return {**job, "spec": version.written}

    async def accept(self, owner: Owner, job: Object, version: Version) -> None:
        """Note what a job runs from now on; one that another replica noted later stays.

        Raises NameTaken or GraphError.
        """
        known = await self.accepted(job)
        if known is not None and known.id == version.id:
            return
        manifest = config_map(owner, version)
        key, content_id = key_of(manifest), content_of(manifest)
        unreadable = known is None and self._caches.config_maps.get(key) is not None

        def stays(item: Object) -> bool:
            later = is_owned_by(item, owner.uid) and _generation(item) > version.generation
            return later or (content_of(item) == content_id and not unreadable)

        item = await replace_config_map(self._caches, self._write, manifest, stays)
        if item is not None and content_of(item) == content_id:
            self._keep(key, _state(item), version)

    def _keep(self, key: Key, state: tuple[str, str], version: Version | None) -> Version | None:
        self._read[key] = state, version
        self._read.move_to_end(key)
        if len(self._read) > REMEMBERED:
            self._read.popitem(last=False)
        return version


def config_map(owner: Owner, version: Version) -> Object:
    """Return the ConfigMap that notes a version of a job. Raises GraphError."""
    written = version.to_json()
    check_size("what is noted of the job's version, compressed,", len(written))
    data = base64.b64encode(written).decode()
    described = metadata(owner, names.accepted_config_map(owner.name), {}, digest(data))
    described["annotations"][names.ANNOTATION_GENERATION] = str(version.generation)
    return {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": described,
        "binaryData": {names.VERSION_KEY: data},
    }


def _generation(item: Object) -> int:
    text = item["metadata"].get("annotations", {}).get(names.ANNOTATION_GENERATION, "")
    return int(text) if text.isdecimal() else 0


def _key(job: Object) -> Key:
    namespace, name = key_of(job)
    return namespace, names.accepted_config_map(name)


def _state(item: Object) -> tuple[str, str]:
    return item["metadata"]["uid"], item["metadata"]["resourceVersion"]


def _version(item: Object) -> Version | None:
    """Return the version in a ConfigMap; None if somebody changed it: it is noted anew soon."""
    try:
        data = base64.b64decode(item["binaryData"][names.VERSION_KEY], validate=True)
        return Version.from_json(data)
    except _DAMAGED as error:
        log.warning("ConfigMap %s/%s can't be read: %s", *key_of(item), error)
        return None
