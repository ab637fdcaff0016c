"""What must hold after every step, whatever happens. `rest` has what must hold in the end.

All of it is checked against the API server's own state and what processes really do, never against
what the operator believes.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from tests.simulation.fake_api_server import FakeApiServer
from tests.simulation.fake_checkpoints import Checkpoint, Counts, Stage
from tests.simulation.fake_nodes import launch_of
from tests.simulation.fake_pe import FakePe
from tests.simulation.fake_records import FakeRecords
from tests.simulation.fake_resources import FakeResource, place_of
from tests.simulation.fake_storage import Change
from tests.simulation.joint_invariants import JointInvariants
from tests.simulation.savepoint_invariants import SavepointInvariants

from streamgraft_common import names
from streamgraft_common.content import Change as Takes
from streamgraft_common.content import Content, classify
from streamgraft_common.kinds import POD
from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key
from streamgraft_common.resources import PARALLEL_REGION, PROCESSING_ELEMENT
from streamgraft_operator.manifests.pod import ANNOTATION_PE_UID

ENDED = ("Failed", "Succeeded")


class Broken(AssertionError):
    """An invariant does not hold."""


class Invariants:
    """Watches every write and every shard. Broken ones are kept in `broken`.

    `patience`: seconds after which the operator must have heard of what it wrote itself.
    """

    def __init__(
        self, server: FakeApiServer, now: Callable[[], float], records: FakeRecords
    ) -> None:
        self._server = server
        self._now = now
        self.broken = records.broken
        self.patience = math.inf
        self._named: dict[tuple[str, int], float] = {}
        self._writers: dict[tuple[Stage, int], set[FakePe]] = defaultdict(set)
        self._owners: dict[tuple[Stage, int, str, int], list[int | None]] = defaultdict(list)
        """Channels that had a shard, one after the other; an edit may give a channel another PE."""
        self._batches: dict[tuple[Stage, int], int] = {}
        self._launches: dict[str, int] = {}
        self._contents: dict[str, set[str]] = defaultdict(set)
        self._pods: dict[tuple[str, int], str] = {}
        self._ended: set[tuple[str, int]] = set()
        """Launches of which a pod failed, was deleted, or is being deleted."""
        self.returns = 0
        """How often a pod went back into a warm pool."""
        self._late: set[str] = set()
        """Pods of launches that were over: a replica was frozen when it had just sent for them."""
        server.storage.observers.append(self._written)
        self._savepoints = SavepointInvariants(server, self._writer, self._break, records.unread)
        self._joint = JointInvariants(self._break)

    # Truth: what processes do.

    def writes(self, pe: FakePe, shard: int, epoch: int) -> None:
        """One writer at a time, and one move per epoch; what was deleted by force may go on.

        The old owner may start a shard in the new epoch: its turn to move has not come then.
        """
        stage, name = pe.stage, pe.pod["metadata"]["name"]
        if pe.pod["metadata"]["uid"] in self._late:
            self._break(f"{name} writes for shard {shard} of {stage[1]}, though it came too late")
        for other in self._writers[stage, shard] - {pe}:
            if self._exists(pe) and self._exists(other):
                both = f"{name} and {other.pod['metadata']['name']}"
                self._break(f"{both} both write for shard {shard} of {stage[1]}")
        self._writers[stage, shard].add(pe)
        if self._exists(pe):
            self._savepoints.starts(stage, shard)
        region = self._region_uid(pe)
        owners = self._owners[stage, shard, region, epoch]
        channel = pe.wanted.channel if pe.wanted else None
        if not owners or owners[-1] != channel:
            owners.append(channel)
        if len(owners) > 2:
            channels = " to ".join(map(str, owners))
            self._break(f"shard {shard} goes from channel {channels} in epoch {epoch}")

    def begins(self, pe: FakePe, shard: int, counts: Counts) -> None:
        """A shard begins where the savepoint of its job ends, or with nothing."""
        self._savepoints.begins(pe.stage, shard, counts)

    def logs(self, pe: FakePe, shard: int, batch: int) -> None:
        """Each batch of a shard is logged once."""
        if self._batches.get((pe.stage, shard), -1) >= batch:
            name = pe.pod["metadata"]["name"]
            self._break(f"{name} logs batch {batch} of shard {shard} of {pe.stage[1]} once more")
        self._batches[pe.stage, shard] = batch

    def rests(self, pe: FakePe, shard: int) -> None:
        """The shard is free again."""
        self._writers[pe.stage, shard].discard(pe)

    def copies(self, pe: FakePe, shard: int, savepoint: str, counts: Counts) -> None:
        """It has copied the checkpoint of a shard into a savepoint."""
        self._savepoints.copies(pe.stage, shard, savepoint, counts)

    def rolls_back(self, pe: FakePe, shard: int, savepoint: str, checkpoint: Checkpoint) -> None:
        """It has put what a cut has in the place of a shard's checkpoint."""
        self._batches[pe.stage, shard] = checkpoint.logged - 1
        self._savepoints.rolls_back(pe.stage, shard, savepoint, checkpoint.counts)

    def commits(self, pe: FakePe, shard: int, savepoint: str) -> None:
        """A sink has made final what a savepoint has of a shard."""
        self._savepoints.commits(pe.stage, shard, savepoint)

    def _writer(self, stage: Stage, shard: int) -> str | None:
        """Return a pod that writes for a shard, those apart that were deleted by force."""
        found = (pe for pe in self._writers[stage, shard] if self._exists(pe))
        return next((str(pe.pod["metadata"]["name"]) for pe in found), None)

    def alone(self, pe: FakePe, shard: int) -> bool:
        """Return whether nobody else writes for a shard."""
        return self._writers[pe.stage, shard] == {pe}

    def _exists(self, pe: FakePe) -> bool:
        """Return whether a process's pod is still known to the API server."""
        metadata = pe.pod["metadata"]
        pod = self._items(POD.path()).get((metadata["namespace"], metadata["name"]))
        return pod is not None and pod["metadata"]["uid"] == metadata["uid"]

    def _region_uid(self, pe: FakePe) -> str:
        region = pe.wanted.region if pe.wanted else None
        key = pe.pod["metadata"]["namespace"], names.region_name(pe.job, region or "")
        item = self._items(PARALLEL_REGION.path(*key)).get(key)
        return str(item["metadata"]["uid"]) if item else ""

    # The API server's state.

    def _written(self, resource: FakeResource, change: Change) -> None:
        if resource.plural == POD.plural:
            self._pod(change)
        elif resource.plural == PROCESSING_ELEMENT.plural and change.new is not None:
            self._pe(change.old, change.new)

    def _pod(self, change: Change) -> None:
        pod = change.last
        labels = pod["metadata"].get("labels", {})
        before = change.old["metadata"].get("labels", {}) if change.old else {}
        if names.LABEL_PE not in labels:
            if names.LABEL_PE in before:
                self._goes_back(pod)
            return
        name, launch = pod["metadata"]["name"], launch_of(pod)
        uid = pod["metadata"]["annotations"][ANNOTATION_PE_UID]
        if _has_ended(pod) or "deletionTimestamp" in pod["metadata"]:
            self._ended.add((uid, launch))
        if change.new is None:
            self._ended.add((uid, launch))
        if names.LABEL_PE in before:
            taken = (names.LABEL_PE, names.LABEL_LAUNCH)
            if any(before[label] != labels[label] for label in taken):
                self._break(f"pod {name} is taken once more")
            return
        if launch > self._launches.get(uid, 0):
            self._break(f"pod {name} has no cause: launch {launch} was never asked for")
        if launch < self._launches.get(uid, 0):
            self._late.add(pod["metadata"]["uid"])
            return
        self._pods[uid, launch] = pod["metadata"]["uid"]
        if self._now() - self._named.get((uid, launch), math.inf) > self.patience:
            self._break(f"pod {name} is the second one of launch {launch}")
        for key, other in self._items(POD.path()).items():
            same = other["metadata"].get("labels", {}).get(names.LABEL_PE) == labels[names.LABEL_PE]
            over = _has_ended(other) or other["metadata"]["uid"] in self._late
            if key[1] != name and same and not over:
                self._break(f"pod {name} is launched while {key[1]} is there")

    def _goes_back(self, pod: Object) -> None:
        """Check a pod that goes back into the warm pool: nothing of its PE may be left in it."""
        name = pod["metadata"]["name"]
        writes = [
            shard
            for (_, shard), writers in self._writers.items()
            if any(pe.pod["metadata"]["uid"] == pod["metadata"]["uid"] for pe in writers)
        ]
        if writes:
            self._break(f"pod {name} goes back into the pool and writes for shards {writes}")
        self.returns += 1

    def _pe(self, old: Object | None, new: Object) -> None:
        uid, name = new["metadata"]["uid"], new["metadata"]["name"]
        self._contents[uid].add(_content(new))
        status = new.get("status") or {}
        count = status.get("launchCount", 0)
        if status.get("pod"):
            self._named.setdefault((uid, count), self._now())
        before = self._launches.get(uid, 0)
        self._launches[uid] = max(before, count)
        if old is not None and count < before:
            self._break(f"PE {name} goes back from launch {before} to {count}")
        if count > before > 0:
            self._launch_has_a_cause(new, before, count)
        if old is None or old["spec"] != new["spec"]:
            self._shards_are_disjoint(new)
        if old is not None:
            self._only_moved_shards_go(old["spec"], new)
            self._joint_queries_start_anew_once(old["spec"], new)

    def _launch_has_a_cause(self, pe: Object, before: int, count: int) -> None:
        uid = pe["metadata"]["uid"]
        if count > before + 1:
            self._break(f"PE {pe['metadata']['name']} leaps from launch {before} to {count}")
        for pod in self._items(POD.path()).values():
            if pod["metadata"]["uid"] != self._pods.get((uid, before)):
                continue
            have = Content.parse(_content(pod))
            contents = map(Content.parse, self._contents[uid])
            outdated = any(classify(have, item) is Takes.RESTART for item in contents)
            if not outdated and (uid, before) not in self._ended:
                name = pod["metadata"]["name"]
                self._break(f"launch {count} has no cause: pod {name} is well")

    def _only_moved_shards_go(self, before: Object, pe: Object) -> None:
        gone = set(before["shards"]) - set(pe["spec"]["shards"])
        if not gone or self._savepoints.may_stop(before["job"], before["stageName"]):
            return
        assignment = self._region_status(pe).get("assignment", {})
        if kept := [n for n in gone if assignment.get(str(n)) == before.get("channel")]:
            self._break(f"PE {pe['metadata']['name']} loses {kept}, which are assigned to it")

    def _joint_queries_start_anew_once(self, before: Object, pe: Object) -> None:
        if self._savepoints.may_stop(before["job"], before["stageName"]):
            self._joint.stops(pe)
        else:
            self._joint.written(before, pe, self._region_status(pe), self._now())

    def _region_status(self, pe: Object) -> Object:
        """Return the status of a PE's region, as far as there is one."""
        region = names.region_name(pe["spec"]["job"], pe["spec"].get("region") or "")
        item = self._items(PARALLEL_REGION.path()).get((pe["metadata"]["namespace"], region)) or {}
        return item.get("status") or {}

    def _shards_are_disjoint(self, pe: Object) -> None:
        spec = pe["spec"]
        for other in self._items(PROCESSING_ELEMENT.path()).values():
            place = other["spec"]["job"], other["spec"]["stageName"]
            if place != (spec["job"], spec["stageName"]) or other is pe:
                continue
            if other["metadata"]["name"] == pe["metadata"]["name"]:
                continue
            if both := set(other["spec"]["shards"]) & set(spec["shards"]):
                pair = pe["metadata"]["name"], other["metadata"]["name"]
                self._break(f"shards {both} are in the specs of {pair[0]} and {pair[1]}")

    def _items(self, path: str) -> Mapping[Key, Object]:
        return self._server.storage.items(place_of(path).resource)

    def _break(self, what: str) -> None:
        self.broken.append(what)


def _content(item: Object) -> str:
    annotations: dict[str, Any] = item["metadata"].get("annotations", {})
    return str(annotations.get(names.ANNOTATION_CONTENT, ""))


def _has_ended(pod: Object) -> bool:
    """Return whether a pod's PE has ended; a sidecar may run on."""
    states = [container["state"] for container in pod["status"].get("containerStatuses", [])]
    return pod["status"].get("phase") in ENDED or any("terminated" in state for state in states)
