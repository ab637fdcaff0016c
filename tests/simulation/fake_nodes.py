"""Scheduler and kubelets of the simulated cluster: pods are bound, run, become ready, and end.

A pod's container is a `FakePe` in a process of its own, which can crash, hang, or go on without
the API server.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.simulation.fake_api_server import FakeApiServer
from tests.simulation.fake_checkpoints import FakeCheckpoints
from tests.simulation.fake_kube_client import FakeKubeClient, FakeNetwork
from tests.simulation.fake_pe import FakePe, Tempo, Truth
from tests.simulation.fake_records import FakeRecords
from tests.simulation.fake_resources import FakeResource, place_of
from tests.simulation.fake_storage import Change
from tests.simulation.virtual_time import EPOCH, Process, VirtualLoop

from streamgraft_common import names
from streamgraft_common.kinds import CONFIG_MAP, POD
from streamgraft_common.kube import NotFound
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import SAVEPOINT
from streamgraft_common.timestamps import to_rfc3339

GRACE_SECONDS = 30.0


@dataclass(frozen=True)
class Container:
    """A process in a pod, and its way to the API server."""

    pe: FakePe
    process: Process
    network: FakeNetwork


class FakeNodes:
    """All nodes as one. `containers` run, by the uid of their pod."""

    def __init__(
        self,
        loop: VirtualLoop,
        server: FakeApiServer,
        network: Callable[[], FakeNetwork],
        truth: Truth,
        records: FakeRecords,
        chance: random.Random,
    ) -> None:
        self._loop = loop
        self._server = server
        self._network = network
        self._truth = truth
        self._records = records
        self._chance = chance
        self.checkpoints = FakeCheckpoints()
        self._back: dict[str, float] = {}
        self.tempo = Tempo(warm_up=5.0, plan=0.5, start=1.0, stop=1.0)
        self.delay = 0.5
        """Seconds at most that a node takes to notice something."""
        self.sidecars = False
        """Whether pods have one that keeps them Running when their PE has ended."""
        self.containers: dict[str, Container] = {}
        server.storage.observers.append(self._pod_changed)
        server.storage.observers.append(self._savepoint_gone)

    def crash(self, uid: str) -> None:
        """Let a container end by itself, in the middle of whatever it does."""
        container = self._kill(uid)
        self._later(self._report_failure, container.pe.pod)

    def lose(self, uid: str, seconds: float) -> None:
        """Let the kubelet of a pod hear and do nothing for a while; its container works on."""
        self._back[uid] = self._loop.time() + seconds

    def _pod_changed(self, resource: FakeResource, change: Change) -> None:
        if resource.plural != "pods":
            return
        metadata = change.last["metadata"]
        if change.new is None:
            if metadata["uid"] in self.containers:
                self._when_back(self._stopped, change.last)
        elif change.old is None:
            self._later(self._bind, change.new)
        elif "deletionTimestamp" in metadata and "deletionTimestamp" not in change.old["metadata"]:
            self._when_back(self._terminate, change.new)

    def _savepoint_gone(self, resource: FakeResource, change: Change) -> None:
        """Remove the files of a savepoint, as the operator does where it sees the volume."""
        if resource.plural == SAVEPOINT.plural and change.new is None:
            self.checkpoints.remove(names.savepoint_path(*change.key))

    def _when_back(self, callback: Callable[[Object], None], pod: Object) -> None:
        """Call back as soon as the kubelet of the pod has heard of it."""
        silent = self._back.get(pod["metadata"]["uid"], 0.0) - self._loop.time()
        self._loop.later(max(0.0, silent) + self._chance.random() * self.delay, callback, pod)

    def _later(self, callback: Callable[..., Any], *arguments: Any) -> None:
        self._loop.later(self._chance.random() * self.delay, callback, *arguments)

    def _current(self, pod: Object) -> Object | None:
        """Return the newest state of this very pod."""
        key = pod["metadata"]["namespace"], pod["metadata"]["name"]
        resource = place_of(POD.path(*key)).resource
        item = self._server.storage.items(resource).get(key)
        return item if item and item["metadata"]["uid"] == pod["metadata"]["uid"] else None

    def _request(self, method: str, pod: Object, body: Object, tail: str = "") -> None:
        key = pod["metadata"]["namespace"], pod["metadata"]["name"]
        self._server.request(method, POD.path(*key) + tail, body, {}, "merge-patch")

    def _bind(self, pod: Object) -> None:
        if (item := self._current(pod)) and "deletionTimestamp" not in item["metadata"]:
            self._request("POST", item, {"target": {"name": "node"}}, "/binding")
            self._later(self._start, item)

    def _start(self, pod: Object) -> None:
        """Start the container as soon as everything that it mounts exists."""
        item = self._current(pod)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return
        if names.LABEL_JOB not in item["metadata"].get("labels", {}):
            return  # it is played by FakeTests, or somebody else's
        namespace = item["metadata"]["namespace"]
        try:
            for volume in item["spec"]["volumes"]:
                if config_map := volume.get("configMap"):
                    self._server.get(place_of(CONFIG_MAP.path(namespace, config_map["name"])))
        except NotFound:
            self._loop.later(2.0, self._start, pod)
            return
        uid = item["metadata"]["uid"]
        network = self._network()
        client = FakeKubeClient(self._server, network)
        parts = self._truth, self.checkpoints, self._records
        pe = FakePe(client, item, self.tempo, *parts, self._chance)
        process = Process(item["metadata"]["name"])
        self.containers[uid] = Container(pe, process, network)
        ending = self._loop.start(process, pe.run())
        ending.add_done_callback(lambda _: self._later(self._ended, uid))
        started = to_rfc3339(EPOCH + self._loop.time())
        status = {"phase": "Running", "startTime": started, "podIP": "127.0.0.2"}
        self._request("PATCH", item, {"status": status}, "/status")
        self._later(self._probe, item)

    def _probe(self, pod: Object) -> None:
        item, container = self._current(pod), self.containers.get(pod["metadata"]["uid"])
        if item is None or container is None:
            return
        if not container.pe.warm:
            self._loop.later(1.0, self._probe, pod)
            return
        condition = {"type": "Ready", "status": "True"}
        self._request("PATCH", item, {"status": {"conditions": [condition]}}, "/status")

    def _terminate(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if container := self.containers.get(uid):
            stopping = self._loop.start(container.process, container.pe.stop())
            stopping.add_done_callback(lambda _: self._later(self._stopped, pod))
            self._loop.later(GRACE_SECONDS, self._stopped, pod)
        else:
            self._stopped(pod)

    def _stopped(self, pod: Object) -> None:
        if pod["metadata"]["uid"] in self.containers:
            self._kill(pod["metadata"]["uid"])
        if item := self._current(pod):
            self._request("DELETE", item, {"gracePeriodSeconds": 0})

    def _ended(self, uid: str) -> None:
        """Note that a container has ended because its pod is gone, or by a failure."""
        if uid in self.containers:
            container = self._kill(uid)
            if container.pe.failed:
                self._report_failure(container.pe.pod)

    def _kill(self, uid: str) -> Container:
        container = self.containers.pop(uid)
        container.process.kill()
        for shard in list(container.pe.shards):
            self._truth.rests(container.pe, shard)
        return container

    def _report_failure(self, pod: Object) -> None:
        if item := self._current(pod):
            ended = {"name": "pe", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}
            phase = "Running" if self.sidecars else "Failed"
            unready = {"type": "Ready", "status": "False"}
            status = {"phase": phase, "containerStatuses": [ended], "conditions": [unready]}
            self._request("PATCH", item, {"status": status}, "/status")


def launch_of(pod: Object) -> int:
    """Return the launch that a pod belongs to."""
    return int(pod["metadata"]["labels"][names.LABEL_LAUNCH])
