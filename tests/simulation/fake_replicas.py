"""Replicas of the real operator in simulated processes, and the Deployment that restarts them."""

import asyncio
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.simulation.applications import NAMESPACE
from tests.simulation.fake_api_server import FakeApiServer
from tests.simulation.fake_kube_client import FakeKubeClient, FakeNetwork
from tests.simulation.virtual_time import Process, VirtualLoop

from streamgraft_operator import assembly
from streamgraft_operator.kit.leadership import Elector, FencedClient, Term, replica
from streamgraft_operator.settings import Settings

SETTINGS = Settings(
    bootstrap_servers="fake:9092",
    checkpoint_volume={"emptyDir": {}},
    image="fake",
    namespaces=(NAMESPACE,),
)
RESTART_SECONDS = 5.0


class FencedFakeClient(FencedClient, FakeKubeClient):
    """The real fence before the fake API server."""

    def __init__(
        self, server: FakeApiServer, network: FakeNetwork, leading: Callable[[], bool]
    ) -> None:
        FakeKubeClient.__init__(self, server, network)
        self.leading = leading


@dataclass(frozen=True)
class Replica:
    """One process of the operator, and its way to the API server."""

    process: Process
    network: FakeNetwork
    stopping: asyncio.Event
    elector: Elector


class FakeReplicas:
    """Keeps as many replicas as are wanted. `ended` hears of those that end by themselves."""

    def __init__(
        self,
        loop: VirtualLoop,
        server: FakeApiServer,
        network: Callable[[], FakeNetwork],
        chance: random.Random,
        ended: Callable[[str], None],
        settings: Settings,
    ) -> None:
        self._loop = loop
        self._server = server
        self._network = network
        self._chance = chance
        self._ended = ended
        self.settings = settings
        self._numbers = itertools.count(1)
        self.replicas: list[Replica] = []

    def start(self) -> None:
        """Start one more replica."""
        process, network = Process(f"operator-{next(self._numbers)}"), self._network()
        lease = NAMESPACE, "operator"
        plain = FakeKubeClient(self._server, network)
        elector = Elector(plain, lease, process.name, Term())
        client = FencedFakeClient(self._server, network, elector.leading)
        stopping = asyncio.Event()
        work = partial(assembly.run, client, self.settings)
        main = self._loop.start(process, replica.run(elector, work, stopping))
        one = Replica(process, network, stopping, elector)
        self.replicas.append(one)
        main.add_done_callback(lambda task: self._done(one, task))

    def crash(self, one: Replica, steps: int) -> None:
        """Kill a replica after so many more of its steps; another one comes in its place."""
        one.process.steps_left = steps
        self._loop.later(self._chance.random() * RESTART_SECONDS, self._replace, one)

    def leave(self, one: Replica) -> None:
        """Send SIGTERM: it hands over what it has in hand."""
        self._loop.later(0.0, one.stopping.set)

    def freeze(self, one: Replica, steps: int, seconds: float) -> None:
        """Stop a replica in the middle of whatever it does, and let it go on later."""
        one.process.steps_left = steps
        self._loop.later(seconds, self._loop.thaw, one.process)

    def _replace(self, one: Replica) -> None:
        one.process.kill()
        if one in self.replicas:  # it may have crashed and been sent away
            self.replicas.remove(one)
            self.start()

    def _done(self, one: Replica, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() or not one.stopping.is_set():
            self._ended(f"{one.process.name} ended by itself: {task}")
        if one in self.replicas:
            self._loop.later(self._chance.random() * RESTART_SECONDS, self._replace, one)
