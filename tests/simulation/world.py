"""Everything that one seed makes: cluster, brokers, operators, and what time does to them."""

import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from tests.simulation.applications import (
    FOREIGN_TOPIC,
    NAMESPACE,
    SOURCE_TOPIC,
    Submission,
    node,
)
from tests.simulation.fake_api_server import FOREGROUND, FakeApiServer
from tests.simulation.fake_garbage_collector import FakeGarbageCollector
from tests.simulation.fake_kafka import FakeBrokers, fake_kafka
from tests.simulation.fake_kube_client import FakeNetwork
from tests.simulation.fake_nodes import FakeNodes
from tests.simulation.fake_replicas import SETTINGS, FakeReplicas
from tests.simulation.fake_resources import FakeResource, place_of
from tests.simulation.fake_storage import Change
from tests.simulation.invariants import Broken, Invariants
from tests.simulation.virtual_time import EPOCH, VirtualLoop, virtual_clocks

from streamgraft_common.kinds import Kind
from streamgraft_common.kube import Conflict, NotFound
from streamgraft_common.kube.client import Object

UNCOUNTED = ("events", "leases")
JOINT = (("second",), (), ("work",), (), (), (), ("work", "second"), ())
"""What is joint in a seed, by its remainder: where a region has both operators, that is one stage
of two, or both. No chance of its own: the other seeds give the traces that they gave before."""


class World:
    """A cluster with an operator in it. `note` takes the lines of the trace."""

    def __init__(self, seed: int, note: Callable[[str], None] | None = None) -> None:
        self.chance = random.Random(seed)
        self.rolls_back = seed % 3 == 1
        """Whether users have consistent regions go back to their last cuts now and then, and these
        do so by themselves when pods fail."""
        self.joint = JOINT[seed % len(JOINT)]
        """Operators of regions whose stages run one query over all shards of a channel."""
        self.loop = VirtualLoop(self.chance)
        self.server = FakeApiServer(lambda: EPOCH + self.loop.time(), self.chance)
        self.brokers = FakeBrokers(self.chance, topics={SOURCE_TOPIC: 2, FOREIGN_TOPIC: 1})
        self.invariants = Invariants(self.server, self.loop.time, self.brokers.records)
        self.networks: list[FakeNetwork] = []
        self.weather = FakeNetwork(self.chance, latency=0.02, watch_delay=0.1)
        """What new connections are like."""
        self.nodes = FakeNodes(
            self.loop,
            self.server,
            self._network,
            self.invariants,
            self.brokers.records,
            self.chance,
        )
        self.operators = FakeReplicas(
            self.loop,
            self.server,
            self._network,
            self.chance,
            self.invariants.broken.append,
            # No chance of its own: seeds give the traces that they gave before.
            replace(SETTINGS, driver_starts=[None, 1, 2][seed % 3]),
        )
        for number in (1, 2):
            self.server.create(place_of("/api/v1/nodes"), node(number))
        self.jobs: dict[str, Submission] = {}
        """Jobs that should exist."""
        self.savepoints = 0
        """How many savepoints users have taken."""
        self.refused: set[str] = set()
        """Jobs whose last edit is refused. Nobody deletes what notes the version before it: both
        ConfigMaps at once would be more than the operator can make up for."""
        self.faulty = True
        """Whether users and faults are still about."""
        self.last_write = 0.0, ""
        """When it was, and of what: leases and events don't count."""
        self._collector = FakeGarbageCollector(self.server)
        self._sweep_is_due = False
        self._note = note
        self.server.storage.observers.append(self._collect)
        self.server.storage.observers.append(self._count)
        if note is not None:
            self.server.storage.observers.append(self._tell)

    @contextmanager
    def surroundings(self) -> Iterator[None]:
        """Give the operator this world's clocks, brokers and chance."""
        random.seed(self.chance.getrandbits(64))
        errors = _Errors(self.invariants)
        logs = [logging.getLogger(name) for name in ("streamgraft_operator", "streamgraft_common")]
        for log in logs:
            log.addHandler(errors)
            log.propagate = False
        try:
            with virtual_clocks(self.loop), fake_kafka(self.brokers):
                yield
                self.loop.close()
        finally:
            for log in logs:
                log.propagate = True
                log.removeHandler(errors)

    def run(self, seconds: float) -> None:
        """Let time pass. Raises Broken if an invariant does not hold."""
        self.loop.run(self.loop.time() + seconds)
        broken = [*self.invariants.broken, *self.loop.errors]
        if broken:
            raise Broken(f"after {self.loop.time():.3f} s: " + "; ".join(broken[:3]))

    def note(self, what: str) -> None:
        """Add a line to the trace."""
        if self._note is not None:
            self._note(f"{self.loop.time():10.3f} {what}")

    # Objects.

    def objects(self, kind: Kind) -> list[Object]:
        """Return all objects of a kind, by name."""
        items = self.server.storage.items(place_of(kind.path()).resource)
        return [item for _, item in sorted(items.items())]

    def get(self, kind: Kind, name: str) -> Object | None:
        """Return an object, or None."""
        try:
            return self.server.get(place_of(kind.path(NAMESPACE, name)))
        except NotFound:
            return None

    def request(self, method: str, kind: Kind, name: str, body: Object | None = None) -> None:
        """Do what a user does; what is missing, or another one by now, is no error."""
        with suppress(NotFound, Conflict):
            self.server.request(method, kind.path(NAMESPACE, name), body, {}, "merge-patch")

    def _network(self) -> FakeNetwork:
        weather = self.weather
        network = FakeNetwork(
            self.chance,
            latency=weather.latency,
            watch_delay=weather.watch_delay,
            slow=weather.slow,
            lost=weather.lost,
            refused=weather.refused,
            dropped=weather.dropped,
            repeated=weather.repeated,
        )
        self.networks.append(network)
        return network

    def _collect(self, resource: FakeResource, change: Change) -> None:
        metadata = change.last["metadata"]
        new = change.old is None and metadata.get("ownerReferences")
        concerned = change.new is None or new or FOREGROUND in metadata.get("finalizers", ())
        if concerned and not self._sweep_is_due:
            self._sweep_is_due = True
            self.loop.later(self.chance.random() * 2.0, self._sweep)

    def _sweep(self) -> None:
        self._sweep_is_due = False
        self._collector.sweep()

    def _count(self, resource: FakeResource, change: Change) -> None:
        if resource.plural not in UNCOUNTED:
            self.last_write = self.loop.time(), f"{resource.kind} {change.key[1]}"

    def _tell(self, resource: FakeResource, change: Change) -> None:
        if resource.plural in UNCOUNTED:
            return
        verb = "create" if change.old is None else "delete" if change.new is None else "update"
        before, after = change.old or {}, change.new or {}
        what = ", ".join(_differences(before, after)) if verb == "update" else ""
        self.note(f"{verb} {resource.kind} {change.key[1]} {what}"[:400])


class _Errors(logging.Handler):
    """Unexpected errors of the operator break an invariant; expected ones are only warnings."""

    def __init__(self, invariants: Invariants) -> None:
        super().__init__()
        self._invariants = invariants

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self._invariants.broken.append(record.getMessage())


def _differences(before: object, after: object, path: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            if key not in ("resourceVersion", "managedFields"):
                yield from _differences(before.get(key), after.get(key), f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, f"{path}[{number}]")
    elif before != after:
        yield f"{path.removeprefix('.')}={after}"
