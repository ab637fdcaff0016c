"""What a torture run does, decided by its seed: width changes, and kills in the midst of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Literal, get_args

Victim = Literal["source", "region", "sink", "operator", "kafka"]
"""The first three: a pod of a PE before the region, in it, behind it."""
VICTIMS: tuple[Victim, ...] = get_args(Victim)

KILLS_EVERY = 9
"""Of so many changes each kind of victim is killed during one."""
LATEST_KILL_SECONDS = 4.0
BACKLOGS = 0.7
"""Share of kills under a backlog."""
HURRIED = 0.2
"""Share of changes that another one follows before they are done."""


@dataclass(frozen=True)
class Kill:
    """A kill `after` seconds from the request of a change; `choice` (0 to 1) picks the pod.

    `backlog`: much more load comes meanwhile than the PEs can take.
    """

    victim: Victim
    after: float
    choice: float
    backlog: bool


@dataclass(frozen=True)
class Step:
    """One width change."""

    width: int
    kill: Kill | None
    hurried: bool

    def __str__(self) -> str:
        kill = ""
        if self.kill:
            load = " under a backlog" if self.kill.backlog else ""
            kill = f", {self.kill.victim} killed{load} after {self.kill.after:.1f} s"
        return f"width {self.width}{kill}{', the next one at once' if self.hurried else ''}"


def steps(seed: int, changes: int, max_width: int, first_width: int = 1) -> Iterator[Step]:
    """Yield the changes of a run; the last one is waited for."""
    random = Random(seed)
    width, kills = first_width, dict[int, Kill]()
    for number in range(changes):
        if number % KILLS_EVERY == 0:
            kills = _kills(random, number, min(KILLS_EVERY, changes - number))
        width = random.choice([other for other in range(1, max_width + 1) if other != width])
        hurried = random.random() < HURRIED and number < changes - 1
        yield Step(width, kills.get(number), hurried)


def _kills(random: Random, first: int, count: int) -> dict[int, Kill]:
    """Return the kills of a block of changes, each kind at most once."""
    victims = random.sample(VICTIMS, min(len(VICTIMS), count))
    places = random.sample(range(first, first + count), len(victims))
    return {
        place: Kill(
            victim,
            random.uniform(0.0, LATEST_KILL_SECONDS),
            random.random(),
            random.random() < BACKLOGS,
        )
        for place, victim in zip(places, victims, strict=True)
    }
