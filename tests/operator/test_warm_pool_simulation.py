"""Warm pods and the PEs that take them, under chance: stale caches, crashes, deleted pods.

Two operators with caches of their own act at the same time, as when leadership changes hands. The
world keeps what the API server stores; a write on an old version of a pod is refused.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from streamgraft_common.content import Content
from streamgraft_common.resources import ProcessingElementStatus
from streamgraft_operator.conductors import pod as pod_conductor
from streamgraft_operator.conductors import warm_pool
from streamgraft_operator.conductors.launches import Relaunch, raised, relaunch
from streamgraft_operator.conductors.pod import PeLaunch, PodPhase, PodView, WarmPodView, launched

CONTENT = Content("driver", "place", "plan", "notes")
SIZE = 2


@dataclass(frozen=True)
class Pod:
    """A stored pod; `pe` is empty while it is in the pool."""

    name: str
    version: int
    pe: str = ""
    launch: int = 0
    ready: bool = False
    failed: bool = False
    deleting: bool = False


class Operator:
    """The caches of one operator."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.restart()

    def restart(self) -> None:
        """Begin anew, with what is stored."""
        self.pods = dict(self.world.pods)
        self.pes = dict(self.world.pes)

    def of(self, pe: str) -> tuple[PodView, ...]:
        return tuple(view(pod) for pod in self.pods.values() if pod.pe == pe)

    def pool(self) -> tuple[WarmPodView, ...]:
        return tuple(warm_view(pod) for pod in self.pods.values() if not pod.pe)


def view(pod: Pod) -> PodView:
    phase: PodPhase = "Failed" if pod.failed else "Running"
    return PodView(pod.name, pod.launch, pod.pe, phase, True, pod.deleting, content_id=str(CONTENT))


def warm_view(pod: Pod) -> WarmPodView:
    usable = not (pod.failed or pod.deleting)
    return WarmPodView(pod.name, CONTENT.driver, pod.ready, usable, running=True)


class World:
    """What is stored, what pods really do, and two operators."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.version = 0
        self.pods: dict[str, Pod] = {}
        self.pes = {f"pe-{n}": ProcessingElementStatus(launch_count=1) for n in range(3)}
        self.works_for: dict[str, tuple[str, int]] = {}
        self.names: set[str] = set()
        self.operators = [Operator(self), Operator(self)]

    @property
    def operator(self) -> Operator:
        return self.random.choice(self.operators)

    def store(self, pod: Pod) -> Pod:
        self.version += 1
        self.pods[pod.name] = replace(pod, version=self.version)
        return self.pods[pod.name]

    def create(self, operator: Operator, pod: Pod) -> None:
        if pod.name not in self.pods:
            self.names.add(pod.name)
            self.store(pod)
        operator.pods[pod.name] = self.pods[pod.name]

    # What operators do.

    def conduct(self) -> None:
        operator, pe = self.operator, self.random.choice(list(self.pes))
        status = operator.pes[pe]
        launch = PeLaunch(
            uid=pe,
            launch_count=status.launch_count,
            content_id=str(CONTENT),
            config_content_id=str(CONTENT),
            bundle_exists=True,
            driver=CONTENT.driver,
            pool=operator.pool(),
            pod=status.pod,
        )
        decision = pod_conductor.step(launch, operator.of(pe), 0.0)
        for name in decision.delete:
            self.delete(name)
        if decision.create:
            name = f"{pe}-{status.launch_count}"
            self.create(operator, Pod(name, 0, pe, status.launch_count))
        if decision.adopt:
            self.adopt(operator, decision.adopt, pe, status.launch_count)

    def adopt(self, operator: Operator, name: str, pe: str, launch: int) -> None:
        """Write on the newest version, if that is still in the pool."""
        pod = self.pods.get(name)
        if pod is None:
            operator.pods.pop(name)
        elif pod.pe or pod.deleting:
            operator.pods[name] = pod
        else:
            operator.pods[name] = self.store(replace(pod, pe=pe, launch=launch))

    def report(self) -> None:
        """Name the pod of a launch, unless the stored status is of another one or names one."""
        operator, pe = self.operator, self.random.choice(list(self.pes))
        seen, stored = operator.pes[pe], self.pes[pe]
        pod = launched(operator.of(pe), pe, seen.launch_count, seen.pod)
        if pod and stored.launch_count == seen.launch_count:
            self.pes[pe] = stored.model_copy(update={"pod": stored.pod or pod.name})
        operator.pes[pe] = self.pes[pe]

    def launch_again(self) -> None:
        operator, pe = self.operator, self.random.choice(list(self.pes))
        seen, stored = operator.pes[pe], self.pes[pe]
        cause = relaunch(seen, CONTENT, operator.of(pe), pe)
        if cause == Relaunch("PodDeleted") and seen.pod in self.pods:
            operator.pods[seen.pod] = self.pods[seen.pod]  # the cache was behind
            if self.pods[seen.pod].deleting is False:
                return
        if cause and stored.launch_count == seen.launch_count:
            self.pes[pe] = raised(stored, cause, 0.0, 0.0)
        operator.pes[pe] = self.pes[pe]

    def fill(self) -> None:
        operator = self.operator
        ended = tuple((p.name, 60.0) for p in operator.pods.values() if p.failed and not p.pe)
        pool = warm_pool.PoolView(SIZE, CONTENT.driver, 9.0, operator.pool(), ended)
        decision = warm_pool.step(pool)
        for name in decision.delete:
            self.delete(name)
        for _ in range(decision.create):
            self.create(operator, Pod(f"warm-{self.random.getrandbits(40):x}", 0))

    def delete(self, name: str) -> None:
        if name in self.pods:
            self.store(replace(self.pods[name], deleting=True))

    def hear(self) -> None:
        operator = self.operator
        if self.random.random() < 0.5:
            operator.pes = dict(self.pes)
        else:
            operator.pods = dict(self.pods)

    # What happens by itself.

    def live(self) -> None:
        """A pod gets ready, hears that a PE names it, or ends when it was told to."""
        if not self.pods:
            return
        pod = self.random.choice(list(self.pods.values()))
        if pod.deleting:
            del self.pods[pod.name]
            return
        if not pod.failed:
            self.store(replace(pod, ready=True))
        for pe, status in self.pes.items():
            if status.pod == pod.name and not pod.failed:
                self.work(pod.name, (pe, status.launch_count))

    def work(self, name: str, assignment: tuple[str, int]) -> None:
        """No pod ever works for two PEs or launches, no launch has two pods."""
        assert self.works_for.setdefault(name, assignment) == assignment
        assert list(self.works_for.values()).count(assignment) == 1

    def break_something(self) -> None:
        kind = self.random.random()
        if kind < 0.3:
            self.operator.restart()
        elif self.pods:
            name = self.random.choice(list(self.pods))
            if kind < 0.6:
                self.delete(name)
            else:
                self.store(replace(self.pods[name], failed=True))


LIFE: tuple[Callable[[World], None], ...] = (
    World.conduct,
    World.report,
    World.launch_again,
    World.fill,
    World.hear,
    World.hear,
    World.live,
    World.live,
)


@pytest.mark.parametrize("seed", range(40))
def test_each_pod_works_for_one_launch_and_none_is_left_over(seed: int) -> None:
    world = World(seed)
    for _ in range(500):
        faulty = world.random.random() < 0.05
        (world.break_something if faulty else lambda: world.random.choice(LIFE)(world))()
    for _ in range(3000):
        world.random.choice(LIFE)(world)
    pool = [pod for pod in world.pods.values() if not pod.pe]
    assert len(pool) == SIZE
    assert len(world.pods) == len(pool) + len(world.pes)
    for pe, status in world.pes.items():
        assert status.pod
        assert world.pods[status.pod].pe == pe
        assert world.works_for[status.pod] == (pe, status.launch_count)
