"""One seed: a job is submitted, faults happen, faults stop, and everything must come to rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.simulation.fake_pe import Tempo
from tests.simulation.fault_list import FAULTS
from tests.simulation.faults import Fault, any_submission, delete_job, resize, submit
from tests.simulation.invariants import Broken
from tests.simulation.rest import missing
from tests.simulation.savepoint_faults import is_healthy, request_cuts, restore_savepoint
from tests.simulation.world import World

REST_SECONDS = 1200.0
"""How long the way back may take: back-offs, deadlines and leases have to pass."""
HEALTHY_SECONDS = 60.0
"""How long a job may take to become healthy, or to be restored, before faults happen."""
QUIET_SECONDS = 65.0
"""How long nothing is written at rest: all controllers look at everything once in it, and what
failed is tried again."""


@dataclass(frozen=True)
class Outcome:
    """How a seed went."""

    seed: int
    problem: str | None
    seconds: float
    """Simulated time."""


def simulate(
    seed: int, note: Callable[[str], None] | None = None, faults: Sequence[Fault] = FAULTS
) -> Outcome:
    """Run a seed. `note` takes the lines of the trace; `faults` are those that may happen."""
    world = World(seed, note)
    problem = None
    with world.surroundings():
        try:
            _play(world, faults)
        except Broken as broken:
            problem = str(broken)
            world.note(f"BROKEN {problem}")
    return Outcome(seed, problem, world.loop.time())


def _play(world: World, faults: Sequence[Fault]) -> None:
    chance = world.chance
    _set_the_weather(world)
    submit(world, any_submission(world, "job"))
    request_cuts(world)
    for _ in range(chance.choice([1, 1, 2])):
        world.operators.start()
    if chance.random() < 0.3:
        _wait_for_health(world)
    used = chance.sample(faults, chance.randint(1, min(5, len(faults))))
    if restore_savepoint in used and chance.random() < 0.7:
        _restore(world)
    for _ in range(chance.randint(0, 8)):
        world.run(chance.random() ** 2 * chance.choice([2.0, 15.0]))
        chance.choice([*used, resize])(world)
    world.run(chance.random() * 10)
    _stop_faults(world)
    _come_to_rest(world)
    if chance.random() < 0.3:
        for job in list(world.jobs):
            delete_job(world, job)
        _come_to_rest(world)


def _wait_for_health(world: World) -> None:
    """Let faults meet a job that runs; otherwise they meet one that is being submitted."""
    _wait(world, lambda: is_healthy(world, "job"))


def _restore(world: World) -> None:
    """Let faults meet a job that is being restored."""
    _wait_for_health(world)
    world.run(world.chance.random() * 30)
    restore_savepoint(world)
    _wait(world, lambda: any("savepoint" in item.extra for item in world.jobs.values()))


def _wait(world: World, until: Callable[[], bool]) -> None:
    deadline = world.loop.time() + HEALTHY_SECONDS
    while not until() and world.loop.time() < deadline:
        world.run(1.0)


def _set_the_weather(world: World) -> None:
    """Choose how bad the network is, and how slow everything."""
    chance, weather = world.chance, world.weather
    weather.latency = chance.choice([0.01, 0.1, 1.0])
    weather.watch_delay = chance.choice([0.01, 0.2, 3.0])
    for share in ("slow", "lost", "refused", "dropped", "repeated"):
        if chance.random() < 0.3:
            setattr(weather, share, chance.choice([0.01, 0.1]))
    if not (weather.slow or weather.lost):
        world.invariants.patience = 3 * weather.latency + weather.watch_delay
    tempo = Tempo(*(chance.choice([0.1, 1.0, 10.0]) for _ in range(4)))
    world.nodes.tempo = replace(tempo, look=20 * tempo.plan)  # may outlast time-outs
    world.nodes.delay = chance.choice([0.1, 3.0])


def _stop_faults(world: World) -> None:
    world.note("faults stop")
    world.faulty = False
    for network in (world.weather, *world.networks):
        network.calm()


def _come_to_rest(world: World) -> None:
    deadline = world.loop.time() + REST_SECONDS
    while left := _unsettled(world) or next(missing(world), None):
        if world.loop.time() > deadline:
            raise Broken(f"does not come to rest: {left}")
        world.run(2.0)
    world.note("at rest")


def _unsettled(world: World) -> str | None:
    at, what = world.last_write
    settled = world.loop.time() - at > QUIET_SECONDS
    return None if settled else f"{what} is still being written"
