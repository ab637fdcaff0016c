"""What must hold of savepoints, whatever happens: by what processes really do.

A savepoint is consistent if no record is between two stages: a stage stands still only once all
above it do, and nobody runs a shard from then on. No batch of it was cut off, which would come
again. A job that starts from it has what it has: each shard the counts of its keys, whatever the
number of key groups. A sink commits a cut only if all of that can be gone back to, whatever fails:
it has all copies, and becomes complete. A rollback that is complete has put every shard where the
cut has it, while all stood still.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass

from tests.simulation.fake_api_server import FakeApiServer
from tests.simulation.fake_checkpoints import KEYS, Counts, Stage
from tests.simulation.fake_resources import FakeResource, place_of
from tests.simulation.fake_storage import Change

from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, SAVEPOINT

Name = tuple[str, str]
"""uid of the job, name of the stage."""
Place = tuple[Name, int]
"""Stage by its name, shard."""


def _name_of(stage: Stage) -> Name:
    """Return the name of a stage; the folder of one that was dropped once has a number behind."""
    job, folder = stage
    return job, folder.partition(".")[0]


@dataclass(frozen=True)
class Copy:
    """A copy of a shard's checkpoint."""

    start: int
    """How often the shard had been started; -1 if a pod ran it meanwhile."""
    counts: Counts


class SavepointInvariants:
    """Watches savepoints. `writer` names the pod that runs a shard at the moment, if any; `unread`
    the partitions of topics with records that nobody has read."""

    def __init__(
        self,
        server: FakeApiServer,
        writer: Callable[[Stage, int], str | None],
        broken: Callable[[str], None],
        unread: Callable[[Collection[str]], list[str]],
    ) -> None:
        self._server = server
        self._writer = writer
        self._break = broken
        self._unread = unread
        self._starts: Counter[Place] = Counter()
        self._lives: dict[Name, set[Stage]] = defaultdict(set)
        """Stage → the folders of its checkpoints, one for each time that it was dropped."""
        self._jobs: dict[str, str] = {}
        """Savepoint → uid of the job that it is of."""
        self._parked: set[tuple[str, str]] = set()
        """Job, stage."""
        self._cuts: dict[str, dict[Place, int]] = {}
        """Savepoint → how often each of its shards had been started when all stood still."""
        self._copies: dict[str, dict[Place, Copy]] = {}
        self._copied: dict[str, dict[Place, Counts]] = {}
        """Savepoint that is complete, by name → what it has of each shard."""
        self._committed: set[str] = set()
        """Savepoints of which a sink has made something final."""
        self._saved: dict[str, dict[str, Counts]] = {}
        """Savepoint that is complete, by name → stages whose state it has → counts of all keys."""
        self._origins: dict[str, str] = {}
        """uid of a job → name of the savepoint that it starts from."""
        server.storage.observers.append(self._written)

    def starts(self, stage: Stage, shard: int) -> None:
        """Note that a pod begins to write for a shard."""
        name = _name_of(stage)
        self._lives[name].add(stage)
        self._starts[name, shard] += 1

    def copies(self, stage: Stage, shard: int, savepoint: str, counts: Counts) -> None:
        """Note that the checkpoint of a shard was copied into a savepoint, by its uid.

        A copy that is made while a pod runs the shard is worth nothing; if the savepoint was given
        up meanwhile it does no harm, either.
        """
        place = _name_of(stage), shard
        start = -1 if self._writes(place) else self._starts[place]
        self._copies.setdefault(savepoint, {})[place] = Copy(start, dict(counts))

    def rolls_back(self, stage: Stage, shard: int, savepoint: str, counts: Counts) -> None:
        """Note that a shard goes on from a cut, for a rollback, by its uid."""
        if pod := self._writes((_name_of(stage), shard)):
            self._break(f"shard {shard} of {stage[1]} is rolled back while {pod} writes for it")
        self.copies(stage, shard, savepoint, counts)

    def commits(self, stage: Stage, shard: int, savepoint: str) -> None:
        """Note that a sink has made final what a savepoint, by its uid, has of a shard."""
        copies, cut = self._copies.get(savepoint, {}), self._cuts.get(savepoint, {})
        if lacking := [place for place in cut if place not in copies]:
            self._break(f"shard {shard} of {stage[1]} is committed before {lacking} are copied")
        self._committed.add(savepoint)

    def begins(self, stage: Stage, shard: int, counts: Counts) -> None:
        """Note with which counts of its keys a shard begins."""
        job, name = _name_of(stage)
        saved = self._saved.get(self._origins.get(job, ""), {}).get(name, {})
        expected = {key: saved.get(key, 0) for key in counts}
        if counts != expected:
            self._break(f"shard {shard} of {name} begins with {counts}, not with {expected}")

    def may_stop(self, job: str, stage: str) -> bool:
        """Return whether a savepoint stops a stage, or did: a write may be late."""
        return (job, stage) in self._parked

    def _written(self, resource: FakeResource, change: Change) -> None:
        if resource.plural == JOB.plural and change.old is None:
            origin = change.last["spec"].get("savepoint", {})
            self._origins[change.last["metadata"]["uid"]] = origin.get("name", "")
        if resource.plural != SAVEPOINT.plural or change.new is None:
            return
        before, after = ((item or {}).get("status") or {} for item in (change.old, change.new))
        if before.get("phase") != after.get("phase"):
            if after["phase"] == "Draining":
                self._begins(change.new)
            elif after["phase"] in ("Saving", "RollingBack"):
                self._stands_still(change.new)
            elif after["phase"] == "Completed":
                self._is_complete(change.new)
            elif change.new["metadata"]["uid"] in self._committed:
                name, phase = change.new["metadata"]["name"], after["phase"]
                self._break(f"{name} is {phase}, and sinks have made parts of it final")
        if new := set(after.get("parked", ())) - set(before.get("parked", ())):
            self._parked |= {(change.new["spec"]["job"], name) for name in new}
            self._is_reached(change.new, new)

    def _begins(self, item: Object) -> None:
        key = item["metadata"]["namespace"], item["spec"]["job"]
        job = self._server.storage.items(place_of(JOB.path()).resource).get(key)
        if job is None:
            self._break(f"savepoint {item['metadata']['name']} begins without a job")
        else:
            self._jobs[item["metadata"]["uid"]] = job["metadata"]["uid"]

    def _is_reached(self, item: Object, parked: set[str]) -> None:
        """All above a stage that is stopped stand still; of a region alone all may stop at once."""
        if item["spec"].get("region"):
            return
        names = [stage["name"] for stage in item["status"]["stages"]]
        if item["spec"].get("rollsBackTo"):
            return
        if strange := parked - set(names):
            self._break(f"{sorted(strange)} stop for a savepoint that they are not part of")
            return
        above = set(names[: max(names.index(name) for name in parked)])
        for place in self._places(item):
            if place[0][1] in above and (pod := self._writes(place)):
                self._break(f"{sorted(parked)} stop while {pod} above them writes")

    def _stands_still(self, item: Object) -> None:
        places = self._places(item)
        for place in places:
            if pod := self._writes(place):
                (_, stage), shard = place
                self._break(f"shard {shard} of {stage} is to be saved while {pod} writes for it")
        ports = [port for stage in item["status"]["stages"] for port in stage["inputs"]]
        topics = [port["topic"] for port in ports if not port.get("external")]
        alone = item["spec"].get("region") or item["spec"].get("rollsBackTo")
        if not alone and (unread := self._unread(topics)):
            self._break(f"{unread} have records that savepoint {item['metadata']['name']} lacks")
        self._cuts[item["metadata"]["uid"]] = {place: self._starts[place] for place in places}

    def _is_complete(self, item: Object) -> None:
        uid, name = item["metadata"]["uid"], item["metadata"]["name"]
        copies, cut = self._copies.get(uid, {}), self._cuts.get(uid, {})
        carried = [
            stage["name"]
            for stage in item["status"]["stages"]
            if stage.get("stateful") or any(port.get("external") for port in stage["inputs"])
        ]
        saved: dict[str, Counts] = {name: {} for name in carried}
        for stage, shard in self._places(item):
            if (copy := copies.get((stage, shard))) is None:
                self._break(f"savepoint {name} lacks shard {shard} of {stage[1]}")
            elif not cut[stage, shard] == copy.start == self._starts[stage, shard]:
                self._break(f"shard {shard} of {stage[1]} ran while savepoint {name} was written")
            elif stage[1] in saved:
                saved[stage[1]] |= copy.counts
        if (cut_name := item["spec"].get("rollsBackTo")) is not None:
            self._is_back(item, cut_name)
            return
        self._copied[name] = {place: copy.counts for place, copy in copies.items()}
        if item["status"].get("uncleanShards") and not item["spec"].get("region"):
            self._break(f"savepoint {name} has batches that others have read, and that come again")
        left = item["spec"].get("consistentRegion") and not item["status"].get("message")
        if left and uid not in self._committed:
            self._break(f"cut {name} is complete without a word, and no sink has committed it")
        if not item["spec"].get("region"):
            self._saved[name] = saved
            if lacking := [stage for stage, counts in saved.items() if len(counts) != KEYS]:
                self._break(f"savepoint {name} lacks keys of {lacking}")

    def _is_back(self, item: Object, cut: str) -> None:
        """Each shard has what the cut has of it."""
        now = self._copies.get(item["metadata"]["uid"], {})
        for place in self._places(item):
            before, found = self._copied.get(cut, {}).get(place), now.get(place)
            if found is None or found.counts != before:
                self._break(f"{place} was rolled back to {found}, and {cut} has {before}")

    def _writes(self, place: Place) -> str | None:
        """Return a pod that writes for a shard, in whichever life of its stage."""
        name, shard = place
        found = (self._writer(stage, shard) for stage in self._lives[name])
        return next(filter(None, found), None)

    def _places(self, item: Object) -> list[Place]:
        job = self._jobs.get(item["metadata"]["uid"], "")
        stages = item["status"].get("stages", [])
        return [((job, stage["name"]), n) for stage in stages for n in range(stage["shards"])]
