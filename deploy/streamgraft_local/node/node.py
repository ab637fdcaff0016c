"""The node: watches the pods bound to it and gives each a worker."""

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp

from streamgraft_common.kube import ApiError, KubeClient, NotFound, Store, Unreachable
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_local.node.addresses import NODE_HOST, AddressPool, NoFreeAddress, ranges
from streamgraft_local.node.api import delete_pod, patch_status, pod_path
from streamgraft_local.node.claims import ClaimProvisioner
from streamgraft_local.node.ended import archive
from streamgraft_local.node.files import write_atomically
from streamgraft_local.node.kubelet_api import PORT, KubeletApi
from streamgraft_local.node.meter import Meter
from streamgraft_local.node.metrics_api import MetricsApi, MetricsEndpoint
from streamgraft_local.node.pod import PodWorker, pod_folder
from streamgraft_local.node.process import kill_marked
from streamgraft_local.node.references import Kind
from streamgraft_local.node.registration import Registration
from streamgraft_local.node.settings import NodeSettings
from streamgraft_local.node.states import Running
from streamgraft_local.node.usage import Usage

log = logging.getLogger(__name__)

_ENDED = ("Succeeded", "Failed")
MOST_TAKEN = 16
"""After so many loopback addresses whose port is taken it is taken on all of them: nodes of other
clusters have one each."""


class ProcessNode:
    """Plays the kubelet. `run()` returns after `stop()`, when all pods have ended."""

    def __init__(self, client: KubeClient, settings: NodeSettings) -> None:
        self._client = client
        self._settings = settings
        self._stop = asyncio.Event()
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._finished: set[str] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._shutdown_grace = 0.0
        selector = f"spec.nodeName={settings.name}"
        self._pods = Store(client, "/api/v1/pods", fieldSelector=selector)
        self._config_maps = Store(client, "/api/v1/configmaps")
        self._secrets = Store(client, "/api/v1/secrets")
        self._meter = Meter(settings.pods_folder, self._runs)

    def stop(self, grace_seconds: float) -> None:
        """End all pods within their own grace periods, at most this one; then run() returns."""
        self._shutdown_grace = grace_seconds
        self._stop.set()

    async def run(self) -> None:
        """Serve until stopped."""
        self._settings.pods_folder.mkdir(parents=True, exist_ok=True)
        api = KubeletApi(self._find_container, self._settings.client_ca)
        prefix = await self._take_range(api)
        self._pool = AddressPool(prefix)
        self._host_ip = f"{prefix}.{NODE_HOST}"
        registration = Registration(self._client, self._settings, (self._host_ip, PORT))
        # As the kubelet: no connection of a probe outlives it.
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as self._http:
            serve = asyncio.create_task(self._serve(registration))
            stop = asyncio.create_task(self._stop.wait())
            try:
                await asyncio.wait({serve, stop}, return_when=asyncio.FIRST_COMPLETED)
                if serve.done():
                    serve.result()
                await registration.leave()
                await self._end_pods()
            finally:
                serve.cancel()
                stop.cancel()
                await asyncio.gather(serve, stop, *self._background, return_exceptions=True)
                await api.close()

    async def _serve(self, registration: Registration) -> None:
        settings = self._settings
        claims = ClaimProvisioner(self._client, settings.claims_folder, settings.name)
        async with asyncio.TaskGroup() as group:
            for store in (self._pods, self._config_maps, self._secrets, claims.claims):
                group.create_task(store.run())
            await self._take_over()
            group.create_task(registration.run())
            group.create_task(claims.run())
            if settings.metrics:
                group.create_task(self._serve_metrics(settings.metrics))

    async def _serve_metrics(self, endpoint: MetricsEndpoint) -> None:
        api = MetricsApi(self._client, self._settings.name, self._measured, self._meter.machine)
        await api.start(endpoint)
        try:
            await self._meter.run()
        finally:
            await api.close()

    def _runs(self) -> dict[str, str]:
        return {key: run for worker in self._workers.values() for key, run in worker.runs().items()}

    def _measured(self, pod: Object) -> dict[str, Usage]:
        worker = self._workers.get(pod["metadata"]["uid"])
        found = (
            {Path(key).name: self._meter.container(key) for key in worker.runs()} if worker else {}
        )
        return {name: used for name, used in found.items() if used}

    async def _take_range(self, api: KubeletApi) -> str:
        """Hold a range by listening on its first address; prefer the one we had."""
        memory = self._settings.home / "node.json"
        kept: list[str] = _kept_range(memory)
        taken = 0
        for prefix in [*kept, *ranges(f"{self._settings.name}@{self._settings.home}")]:
            try:
                await api.start(f"{prefix}.{NODE_HOST}")
            except OSError as error:
                log.info("%s.0/24 is taken: %s", prefix, error)
                taken += 1
                if taken == MOST_TAKEN:
                    break
                continue
            write_atomically(memory, json.dumps({"range": prefix}).encode())
            return prefix
        raise OSError(
            f"port {PORT} is taken on {taken} loopback addresses: another kubelet runs here, and"
            " listens on all of them; stop it, or let it listen on the node's address only"
        )

    async def _take_over(self) -> None:
        """Adopt what runs, end what no longer belongs to any pod, then follow changes."""
        await self._wait_synced()
        pods = list(self._pods.items())
        folders = {pod_folder(self._settings.pods_folder, pod) for pod in pods}
        for folder in self._settings.pods_folder.iterdir():
            if folder not in folders:
                await self._remove(folder)
        for pod in pods:
            address = pod["status"].get("podIP")
            if address and pod["status"]["phase"] not in _ENDED:
                self._pool.claim(pod["metadata"]["uid"], address)
        self._pods.listen(self._pod_changed)
        self._config_maps.listen(self._reference_listener("configmaps"))
        self._secrets.listen(self._reference_listener("secrets"))
        for pod in self._pods.items():
            self._see(pod)

    async def _wait_synced(self) -> None:
        for store in (self._pods, self._config_maps, self._secrets):
            await store.synced.wait()

    def _reference_listener(
        self, kind: Kind
    ) -> Callable[[Key, Object | None, Object | None], None]:
        def changed(key: Key, _old: Object | None, _new: Object | None) -> None:
            for worker in self._workers.values():
                same_namespace = worker.pod["metadata"]["namespace"] == key[0]
                if same_namespace and (kind, key[1]) in worker.references:
                    worker.references_changed()

        return changed

    def _pod_changed(self, _key: Key, old: Object | None, new: Object | None) -> None:
        if old and (new is None or old["metadata"]["uid"] != new["metadata"]["uid"]):
            self._lose(old)
        if new:
            self._see(new)

    def _see(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if worker := self._workers.get(uid):
            worker.update(pod)
            return
        if uid in self._finished or pod["status"].get("phase") in _ENDED:
            if "deletionTimestamp" in pod["metadata"]:
                self._spawn(self._delete(pod))
            return
        if not self._stop.is_set():
            try:
                addresses = (self._pool.allocate(uid), self._host_ip)
            except NoFreeAddress as error:
                self._spawn(self._reject(pod, str(error)))
                return
            worker = PodWorker(pod, self._settings, self._client, self._http, addresses)
            self._workers[uid] = worker
            self._tasks[uid] = asyncio.create_task(self._run_worker(uid, worker))

    async def _reject(self, pod: Object, message: str) -> None:
        status = {"phase": "Failed", "reason": "OutOfpods", "message": message}
        with contextlib.suppress(ApiError, Unreachable):
            await patch_status(self._client, pod_path(pod), pod["metadata"]["uid"], status)

    async def _run_worker(self, uid: str, worker: PodWorker) -> None:
        try:
            await worker.run()
        finally:
            del self._workers[uid], self._tasks[uid]
            self._finished.add(uid)
            self._pool.release(uid)

    def _lose(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if worker := self._workers.get(uid):
            worker.vanished()
        self._finished.discard(uid)
        self._spawn(self._clean_up(pod, self._tasks.get(uid)))

    async def _clean_up(self, pod: Object, task: "asyncio.Task[None] | None") -> None:
        if task:
            await asyncio.wait([task])
        await self._remove(pod_folder(self._settings.pods_folder, pod))

    async def _remove(self, folder: Path) -> None:
        await asyncio.to_thread(kill_marked, folder)
        await asyncio.to_thread(archive, folder, self._settings.ended_folder)

    async def _delete(self, pod: Object) -> None:
        try:
            await delete_pod(self._client, pod)
        except NotFound:
            return
        except (ApiError, Unreachable) as error:
            log.warning("deleting ended pod %s: %s", pod["metadata"]["name"], error)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _end_pods(self) -> None:
        for worker in list(self._workers.values()):
            worker.shut_down(self._shutdown_grace)
        with contextlib.suppress(ValueError):
            await asyncio.wait(list(self._tasks.values()))
        # What an earlier node left, if the API server could not be asked about it.
        await asyncio.to_thread(kill_marked, self._settings.pods_folder)

    def _find_container(
        self, namespace: str, name: str, container: str
    ) -> tuple[Path, Callable[[], bool]] | None:
        pod = self._pods.get((namespace, name))
        if pod is None:
            return None
        worker = self._workers.get(pod["metadata"]["uid"])
        found = worker.container(container) if worker else None

        def writes() -> bool:
            return found is not None and isinstance(found.view().state, Running)

        return pod_folder(self._settings.pods_folder, pod) / container, writes


def _kept_range(memory: Path) -> list[str]:
    return [json.loads(memory.read_text())["range"]] if memory.exists() else []
