"""One pod on this node, from the first sight of it to its last status.

Everything about the pod happens in the task of `run()`; the node calls `update`,
`references_changed` and `vanished` when the API server's view changes.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp

from streamgraft_common.kube import ApiError, Conflict, KubeClient, NotFound, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_local.node.admission import refusal
from streamgraft_local.node.api import delete_pod, patch_status, pod_path, post_event
from streamgraft_local.node.checks import Checks, Command
from streamgraft_local.node.container import Container, NotReady
from streamgraft_local.node.pod_files import PodFiles
from streamgraft_local.node.process import kill_marked, marker
from streamgraft_local.node.references import Reference, references
from streamgraft_local.node.scratch import remove_scratch
from streamgraft_local.node.settings import NodeSettings
from streamgraft_local.node.states import Running, now
from streamgraft_local.node.status import initialized, pod_status, readiness
from streamgraft_local.node.termination import Termination
from streamgraft_local.node.tokens import Tokens

log = logging.getLogger(__name__)

_RETRY_SECONDS = 5.0
"""Between attempts to start what can't start yet; a changed reference wakes it earlier."""
_DEFAULT_GRACE = 30
_LAST_REPORTS = 3
"""Attempts at the last status while the node goes down: the API server may be gone first."""


def pod_folder(base: Path, pod: Object) -> Path:
    """Return the folder of a pod: logs, volumes, state."""
    metadata = pod["metadata"]
    return base / f"{metadata['namespace']}_{metadata['name']}_{metadata['uid']}"


class PodWorker:
    """Runs one pod; it is the Host of the pod's containers."""

    def __init__(
        self,
        pod: Object,
        settings: NodeSettings,
        client: KubeClient,
        http: aiohttp.ClientSession,
        addresses: tuple[str, str],
    ) -> None:
        pod_ip, host_ip = self.addresses = addresses
        self.pod = pod
        self.folder = pod_folder(settings.pods_folder, pod)
        self.termination = Termination()
        self.checks = Checks(http, pod_ip)
        self.references: set[Reference] = references(pod)
        self._settings = settings
        self._client = client
        self._tokens = Tokens(client, pod)
        placed = pod | {"status": pod["status"] | {"podIP": pod_ip, "hostIP": host_ip}}
        self._files = PodFiles(placed, self.folder, settings, client, self._tokens)
        self._inits = self._containers("initContainers")
        self._mains = self._containers("containers")
        self._dirty = asyncio.Event()
        self._wake = asyncio.Event()
        self._published: Object = {}
        self._override: Object = {}
        self._gone = False
        self._leaving = False
        self._events: set[asyncio.Task[None]] = set()

        if self._inits:
            for container in self._mains:
                container.wait_for("PodInitializing", "")

    def _containers(self, field: str) -> list[Container]:
        spec = self.pod["spec"]
        policy = spec.get("restartPolicy", "Always")
        if field == "initContainers" and policy == "Always":
            policy = "OnFailure"
        grace = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE)
        return [
            Container(item, self.folder / item["name"], policy, grace, self)
            for item in spec.get(field, [])
        ]

    def container(self, name: str) -> Container | None:
        """Return a container by name, or None."""
        return next((item for item in [*self._inits, *self._mains] if item.name == name), None)

    def runs(self) -> dict[str, str]:
        """Return the containers that run, by marker, each with the id of its run."""
        views = {item: item.view() for item in [*self._inits, *self._mains]}
        return {
            marker(item.folder): view.container_id
            for item, view in views.items()
            if isinstance(view.state, Running)
        }

    def update(self, pod: Object) -> None:
        """Hear of a new version of the pod."""
        self.pod = pod
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata:
            grace = metadata.get("deletionGracePeriodSeconds", _DEFAULT_GRACE)
            self.termination.request(grace)
        if self._published and readiness(pod["status"]) != readiness(self._published):
            # The node life-cycle controller takes all pods of a node that was silent for unready.
            self._published = {}
            self.changed()
        if pod["spec"].get("readinessGates"):
            self.changed()

    def references_changed(self) -> None:
        """Hear that a ConfigMap or Secret of the pod changed."""
        self._wake.set()

    def vanished(self) -> None:
        """Hear that the pod is gone from the API: nothing to report, end at once."""
        self._gone = True
        self.termination.request(0)

    def shut_down(self, grace_seconds: float) -> None:
        """End the pod because the node goes down; it is reported as failed."""
        self._leaving = True
        own = self.pod["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE)
        message = "Pod was terminated because its node was shut down."
        self._override = {"phase": "Failed", "reason": "Terminated", "message": message}
        self.termination.request(min(own, grace_seconds))

    async def command(self, container: Object, folder: Path) -> Command:
        """Return what to start for a container. Raises NotReady."""
        return await self._files.command(container, folder)

    async def retry(self) -> None:
        """Return after a while, or when a reference changed or the pod is to end."""
        waits = [
            asyncio.create_task(self.termination.sleep(_RETRY_SECONDS)),
            asyncio.create_task(self._wake.wait()),
        ]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()

    def changed(self) -> None:
        """Publish the status anew."""
        self._dirty.set()

    def event(self, kind: str, reason: str, message: str) -> None:
        """Record an Event about the pod, in the background."""
        log.info("%s/%s: %s: %s", *self._key(), reason, message)
        post = post_event(self._client, self._settings.name, self.pod, kind, reason, message)
        task = asyncio.create_task(post)
        self._events.add(task)
        task.add_done_callback(self._events.discard)

    def _key(self) -> tuple[str, str]:
        return self.pod["metadata"]["namespace"], self.pod["metadata"]["name"]

    async def run(self) -> None:
        """Run the pod to its end; afterwards it is reported, and deleted if that was asked."""
        self.update(self.pod)
        publisher = asyncio.create_task(self._keep_published())
        try:
            if why := refusal(self.pod):
                self._override = {"phase": "Failed", "reason": "Unsupported", "message": why}
            else:
                await self._run_containers()
        except Exception as error:
            log.exception("pod %s/%s", *self._key())
            self._override = {"phase": "Failed", "reason": "NodeError", "message": repr(error)}
        finally:
            publisher.cancel()
            await asyncio.to_thread(kill_marked, self.folder)
            await asyncio.to_thread(remove_scratch, self.folder)
        await self._finish()

    async def _run_containers(self) -> None:
        for container in [*self._inits, *self._mains]:
            container.folder.mkdir(parents=True, exist_ok=True)
            await container.recover()
        self.changed()
        await self._until_ready(self._files.synchronize)
        keeper = asyncio.create_task(self._keep_files())
        try:
            for container in self._inits:
                await container.run()
                if not initialized([container.view()]):
                    break
            else:
                await self._run_all()
        finally:
            keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeper

    async def _run_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for container in self._mains:
                group.create_task(container.run())

    async def _until_ready(self, action: Callable[[], Awaitable[None]]) -> None:
        while not self.termination.requested:
            self._wake.clear()
            try:
                await action()
                return
            except NotReady as error:
                for container in self._inits or self._mains:
                    container.wait_for(error.reason, str(error))
                await self.retry()

    async def _keep_files(self) -> None:
        """Renew tokens, and follow changes of ConfigMaps and Secrets."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(self._tokens.seconds_to_renewal(), _RETRY_SECONDS)):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self._files.synchronize()
            except NotReady as error:
                # The containers go on with what they have, as with the kubelet.
                self.event("Warning", "FailedMount", str(error))

    def _status(self) -> Object:
        inits = [container.view() for container in self._inits]
        mains = [container.view() for container in self._mains]
        status = pod_status(self.pod, inits, mains, self.addresses, now())
        return status | self._override

    async def _keep_published(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            try:
                await self._publish()
            except (NotFound, Conflict):
                log.debug("pod %s/%s is gone", *self._key())
            except (ApiError, Unreachable) as error:
                log.warning("status of %s/%s: %s", *self._key(), error)
                self._dirty.set()
                await asyncio.sleep(1.0)

    async def _publish(self) -> None:
        status = self._status()
        if status == self._published:
            return
        uid = self.pod["metadata"]["uid"]
        self.pod = await patch_status(self._client, pod_path(self.pod), uid, status)
        self._published = status

    async def _finish(self) -> None:
        attempts = 0
        while not self._gone and not (self._leaving and attempts >= _LAST_REPORTS):
            try:
                await self._publish()
                if "deletionTimestamp" in self.pod["metadata"]:
                    await delete_pod(self._client, self.pod)
                return
            except (NotFound, Conflict):
                return
            except (ApiError, Unreachable) as error:
                log.warning("last status of %s/%s: %s", *self._key(), error)
                attempts += 1
                await asyncio.sleep(1.0)
