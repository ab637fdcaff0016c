"""A namespace with jobs in it, as integration tests of the operator see it."""

import asyncio
import base64
import io
import json
import time
import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from streamgraft_common.kinds import CONFIG_MAP, EVENT, POD, Kind
from streamgraft_common.kube import KubeClient, NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import HOST_POOL, JOB, PARALLEL_REGION, PROCESSING_ELEMENT

DEADLINE_SECONDS = 60.0
_SCHEMA = {
    "type": "struct",
    "fields": [{"name": "key", "type": "string", "nullable": True, "metadata": {}}],
}


def application(topics: str, **changes: Any) -> dict[str, Any]:
    """Return an ADL: source → region of one operator, 4 shards → sink; topics `<topics>-in|out`."""
    return {
        "format": 1,
        "name": "tiny",
        "builtBy": "0.1.0",
        "module": "tiny",
        "application": "application",
        "operators": [
            {
                "name": "read",
                "kind": "kafka-source",
                "outputs": ["raw"],
                "kafka": {"topic": f"{topics}-in"},
            },
            {
                "name": "work",
                "kind": "function",
                "inputs": ["raw"],
                "outputs": ["done"],
                "region": "r",
            },
            {
                "name": "write",
                "kind": "kafka-sink",
                "inputs": ["done"],
                "kafka": {"topic": f"{topics}-out", "partitions": 2},
            },
        ],
        "streams": [
            {"name": "raw", "producer": "read", "schema": _SCHEMA},
            {"name": "done", "producer": "work", "schema": _SCHEMA},
        ],
        "regions": [{"name": "r", "key": ["key"], "width": 1, "maxWidth": 4}],
        "parameters": {"speed": "1"},
        **changes,
    }


def bundle(adl: dict[str, Any]) -> bytes:
    """Return a bundle with this ADL."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("adl.json", json.dumps(adl))
    return buffer.getvalue()


@dataclass(frozen=True)
class World:
    """One namespace."""

    client: KubeClient
    namespace: str

    async def upload(self, content: bytes, name: str = "bundle") -> None:
        """Create or replace the ConfigMap of a bundle."""
        data = {"bundle.zip": base64.b64encode(content).decode()}
        path = CONFIG_MAP.path(self.namespace, name)
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "binaryData": data,
        }
        await self.client.apply(path, manifest, "test")

    async def submit(self, name: str = "job", **spec: Any) -> None:
        """Create a job whose pods no scheduler can place: they are played by hand."""
        huge = {"resources": {"requests": {"cpu": "1000"}}}
        manifest = {
            "apiVersion": JOB.api_version,
            "kind": JOB.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "bundle": {"configMap": {"name": "bundle"}},
                "processingElement": huge,
                **spec,
            },
        }
        await self.client.create(JOB.path(self.namespace), manifest)

    async def create_pool(self, name: str, **spec: Any) -> None:
        """Create a HostPool."""
        manifest = {
            "apiVersion": HOST_POOL.api_version,
            "kind": HOST_POOL.kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        await self.client.create(HOST_POOL.path(self.namespace), manifest)

    async def get(self, kind: Kind, name: str) -> Object | None:
        """Return an object, or None."""
        try:
            return await self.client.get(kind.path(self.namespace, name))
        except NotFound:
            return None

    async def names(self, kind: Kind, selector: str = "streamgraft.io/job") -> list[str]:
        """Return the names of all objects of a kind that a label selector matches."""
        listing = await self.client.get(kind.path(self.namespace), labelSelector=selector)
        return [item["metadata"]["name"] for item in listing["items"]]

    async def uids(self) -> dict[str, str]:
        """Return name → uid of all pods."""
        listing = await self.client.get(POD.path(self.namespace))
        return {item["metadata"]["name"]: item["metadata"]["uid"] for item in listing["items"]}

    async def events(self) -> list[Object]:
        """Return all Events."""
        items: list[Object] = (await self.client.get(EVENT.path(self.namespace)))["items"]
        return items

    async def eventually(
        self, kind: Kind, name: str, holds: Callable[[Object | None], object]
    ) -> Any:
        """Wait until `holds` of the object (None: absent) is true; return the object.

        A field that `holds` asks for and that is not there yet (a new object has no status) is
        waited for.
        """
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not _so(holds, item := await self.get(kind, name)):
            if time.monotonic() > deadline:
                raise AssertionError(f"{kind.kind} {name} stayed {json.dumps(item, indent=1)}")
            await asyncio.sleep(0.05)
        return item

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until `holds` says so."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not await holds():
            if time.monotonic() > deadline:
                listing = await self.client.get(POD.path(self.namespace))
                seen = [(item["metadata"], item["status"]) for item in listing["items"]]
                raise AssertionError(f"never, with these pods: {json.dumps(seen, indent=1)}")
            await asyncio.sleep(0.05)

    async def job_in(self, phase: str, name: str = "job") -> Object:
        """Wait until a job is in a phase."""
        return await self.job(lambda status: status.get("phase") == phase, name)

    async def job(self, holds: Callable[[Object], object], name: str = "job") -> Object:
        """Wait until `holds` of a job's status is true; return the job."""
        item: Object = await self.eventually(
            JOB, name, lambda item: item and holds(item.get("status") or {})
        )
        return item

    async def pe(self, name: str, holds: Callable[[Object], object]) -> Object:
        """Wait until there is a PE for which `holds` is true."""
        item: Object = await self.eventually(
            PROCESSING_ELEMENT, name, lambda item: item and holds(item)
        )
        return item

    async def scale(self, region: str, width: int) -> None:
        """Set a width as the HPA does."""
        path = f"{PARALLEL_REGION.path(self.namespace, region)}/scale"
        await self.client.patch(path, {"spec": {"replicas": width}})

    async def serving(self, region: str, width: int) -> Object:
        """Wait until a region serves at a width and is done with the change."""

        def holds(item: Object | None) -> bool:
            status = (item or {}).get("status") or {}
            resizing = [c for c in status.get("conditions", []) if c["type"] == "Resizing"]
            return status.get("width") == width and resizing[0]["status"] == "False"

        item: Object = await self.eventually(PARALLEL_REGION, region, holds)
        return item


def condition(job: Object, kind: str) -> dict[str, Any]:
    """Return a condition of a job's status ({} if there is none)."""
    conditions = job.get("status", {}).get("conditions", [])
    return next((item for item in conditions if item["type"] == kind), {})


def _so(holds: Callable[[Object | None], object], item: Object | None) -> bool:
    try:
        return bool(holds(item))
    except KeyError:
        return False
