"""The pods of test suites in the simulated cluster: they run for a while and pass or fail."""

import random

from tests.simulation.fake_api_server import FakeApiServer
from tests.simulation.fake_resources import FakeResource, place_of
from tests.simulation.fake_storage import Change
from tests.simulation.virtual_time import EPOCH, VirtualLoop

from streamgraft_common import names
from streamgraft_common.kinds import POD
from streamgraft_common.kube.client import Object
from streamgraft_common.timestamps import to_rfc3339

LONGEST_SECONDS = 20.0


class FakeTests:
    """Plays the containers of tests. `endings`: phase by the uid of a pod that has ended."""

    def __init__(self, loop: VirtualLoop, server: FakeApiServer, chance: random.Random) -> None:
        self._loop = loop
        self._server = server
        self._chance = chance
        self.endings: dict[str, str] = {}
        server.storage.observers.append(self._changed)

    def _changed(self, resource: FakeResource, change: Change) -> None:
        if resource.plural != POD.plural or change.old is not None or change.new is None:
            return
        if names.LABEL_SCENARIO in change.new["metadata"].get("labels", {}):
            self._loop.later(self._chance.random() * 3.0, self._begin, change.new)

    def _begin(self, pod: Object) -> None:
        if self._alive(pod):
            started = to_rfc3339(EPOCH + self._loop.time())
            self._report(pod, {"phase": "Running", "startTime": started})
            self._loop.later(self._chance.random() * LONGEST_SECONDS, self._end, pod)

    def _end(self, pod: Object) -> None:
        if self._alive(pod):
            passed = self._chance.random() < 0.7
            ended = {"exitCode": 0 if passed else 1, "reason": "Completed" if passed else "Error"}
            phase = "Succeeded" if passed else "Failed"
            self.endings[pod["metadata"]["uid"]] = phase
            states = [{"name": "test", "state": {"terminated": ended}}]
            self._report(pod, {"phase": phase, "containerStatuses": states})

    def _alive(self, pod: Object) -> bool:
        metadata = pod["metadata"]
        items = self._server.storage.items(place_of(POD.path()).resource)
        item = items.get((metadata["namespace"], metadata["name"]))
        return (
            item is not None
            and item["metadata"]["uid"] == metadata["uid"]
            and "deletionTimestamp" not in item["metadata"]
        )

    def _report(self, pod: Object, status: Object) -> None:
        path = POD.path(pod["metadata"]["namespace"], pod["metadata"]["name"])
        self._server.request("PATCH", f"{path}/status", {"status": status}, {}, "merge-patch")
