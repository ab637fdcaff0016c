"""Posts Kubernetes Events: in the background, equal ones counted instead of repeated."""

import asyncio
import hashlib
import logging
import time

from streamgraft_common.kinds import EVENT
from streamgraft_common.kube import ApiError, Conflict, KubeClient, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_operator.events import Event
from streamgraft_operator.kit import metrics

log = logging.getLogger(__name__)

REPEAT_SECONDS = 60.0
"""An event that was posted is not posted again within this time."""
LONGEST_MESSAGE = 1000
WAITING = 1000


class Recorder:
    """Takes events from anywhere in the operator; never blocks and never fails its caller."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._waiting: asyncio.Queue[tuple[Object, Event]] = asyncio.Queue(WAITING)
        self._posted: dict[str, float] = {}

    def record(self, about: Object, event: Event) -> None:
        """Post `event` on the object `about`."""
        try:
            self._waiting.put_nowait((about, event))
        except asyncio.QueueFull:
            log.warning("too many events, dropped: %s", event)

    async def run(self) -> None:
        """Post until cancelled."""
        while True:
            about, event = await self._waiting.get()
            try:
                await self._post(about, event)
            except (ApiError, Unreachable) as error:
                log.warning("can't post the event %s: %s", event, error)
            except Exception:  # messages have texts of users in them, which may be anything
                log.exception("can't post the event %r", event)
            finally:
                self._waiting.task_done()

    async def flush(self) -> None:
        """Wait until all events that were recorded so far are posted; `run` must be running."""
        await self._waiting.join()

    async def _post(self, about: Object, event: Event) -> None:
        metadata = about["metadata"]
        name = _name(about, event)
        now = time.time()
        self._posted = {key: at for key, at in self._posted.items() if at > now - REPEAT_SECONDS}
        if name in self._posted:
            return
        self._posted[name] = now
        try:
            body = _manifest(name, about, event, now)
            await self._client.create(EVENT.path(metadata["namespace"]), body)
        except Conflict:
            path = EVENT.path(metadata["namespace"], name)
            count = (await self._client.get(path)).get("count", 1) + 1
            stamp = to_rfc3339(now)
            await self._client.patch(path, {"count": count, "lastTimestamp": stamp})
        metrics.API_WRITES.labels("create", "Event").inc()


def _name(about: Object, event: Event) -> str:
    content = "\n".join((about["metadata"]["uid"], event.type, event.reason, event.message))
    data = content.encode(errors="backslashreplace")  # JSON may have halves of characters
    return f"{about['metadata']['name']}.{hashlib.sha256(data).hexdigest()[:16]}"


def _manifest(name: str, about: Object, event: Event, now: float) -> Object:
    metadata = about["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        },
        "type": event.type,
        "reason": event.reason,
        "message": event.message[:LONGEST_MESSAGE],
        "source": {"component": "streamgraft-operator"},
        "reportingComponent": "streamgraft-operator",
        "firstTimestamp": to_rfc3339(now),
        "lastTimestamp": to_rfc3339(now),
        "count": 1,
    }
