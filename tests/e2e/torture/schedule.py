"""What a torture run does, decided by its seed: width changes, edits, and kills in their midst."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

Victim = Literal["source", "region", "sink", "operator", "kafka", "kube-apiserver", "repository"]
"""The first three: a pod of a PE before the region, in it, behind it."""
PLACES: tuple[Victim, ...] = ("source", "region", "sink")
VICTIMS: tuple[Victim, ...] = (*PLACES, "operator", "kafka", "kube-apiserver")
Means = Literal["kill", "freeze", "memory", "disk", "delete"]
"""SIGKILL; SIGSTOP and, later, SIGCONT; SIGKILL of the driver's JVM alone, as the kernel does when
memory is out; no file can be written for a while; the pod is deleted."""
MEANS: tuple[Means, ...] = ("kill", "freeze", "memory", "disk")
OF_PROGRAMS: tuple[Means, ...] = ("kill", "freeze")

NAMES: Mapping[str, tuple[Means, ...]] = {
    "kills": ("kill", "memory"),
    "deletions": ("delete",),
    "freezes": ("freeze",),
    "full disks": ("disk",),
}
"""What a run counts of them: by a kill a process dies, of what is frozen none has to."""

BLOCK = 9
"""Of so many changes each kind of victim has one, and one comes with an edit."""
HURRIED = 0.2
"""Share of changes that another one follows before they are done."""


@dataclass(frozen=True)
class Kill:
    """A kill `after` seconds from the request of a change; `choice` (0 to 1) picks the pod.

    `seconds`: how long what passes lasts. `backlog`: much more load comes meanwhile than the PEs
    can take.
    """

    victim: Victim
    means: Means
    after: float
    seconds: float
    choice: float
    backlog: bool

    def __str__(self) -> str:
        load = " under a backlog" if self.backlog else ""
        lasting = f" for {self.seconds:.0f} s" if self.seconds else ""
        return f"{self.victim}: {self.means}{lasting}{load} after {self.after:.1f} s"


@dataclass(frozen=True)
class Chances:
    """From what the kills of a run are drawn. Times in seconds."""

    of_pods: tuple[Means, ...]
    """What pods suffer; programs suffer OF_PROGRAMS."""
    latest: float
    """After which a kill comes at most."""
    freezes: tuple[float, float]
    """How long a freeze lasts."""
    disk: float
    """How long a disk is full."""
    backlogs: float
    """Share of kills under a backlog."""
    away: tuple[float, float] = (0.0, 0.0)
    """How long a repository that was killed stays away."""

    def kill(self, random: Random, victim: Victim) -> Kill:
        """Draw what happens to a victim."""
        means = random.choice(self.of_pods if victim in PLACES else OF_PROGRAMS)
        lasting = {"freeze": random.uniform(*self.freezes), "disk": self.disk}
        if victim == "repository":
            lasting["kill"] = random.uniform(*self.away)
        return Kill(
            victim,
            means,
            random.uniform(0.0, self.latest),
            lasting.get(means, 0.0),
            random.random(),
            random.random() < self.backlogs,
        )


CHANCES = Chances(MEANS, latest=4.0, freezes=(5.0, 75.0), disk=10.0, backlogs=0.7)
"""A pod that answers no probe is ended after 60 s, the operator's lease is over after 15 s."""


def tally(struck: Mapping[Means, int]) -> dict[str, int]:
    """Return how often each kind of thing happened, of those that did."""
    found = {name: sum(struck.get(item, 0) for item in means) for name, means in NAMES.items()}
    return {name: count for name, count in found.items() if count}


@dataclass(frozen=True)
class Step:
    """One width change; `edit`: another form of the application is submitted before it."""

    width: int
    kill: Kill | None
    hurried: bool
    edit: bool = False

    def __str__(self) -> str:
        parts = ["an edit"] if self.edit else []
        parts += [f"width {self.width}"]
        parts += [str(self.kill)] if self.kill else []
        parts += ["the next one at once"] if self.hurried else []
        return ", ".join(parts)


def steps(seed: int, changes: int, max_width: int, first_width: int = 1) -> Iterator[Step]:
    """Yield the changes of a run; the last one is waited for."""
    random = Random(seed)
    width, kills, edited = first_width, dict[int, Kill](), -1
    for number in range(changes):
        if number % BLOCK == 0:
            count = min(BLOCK, changes - number)
            kills = _kills(random, number, count)
            edited = random.choice(range(number, number + BLOCK))
        width = random.choice([other for other in range(1, max_width + 1) if other != width])
        hurried = random.random() < HURRIED and number < changes - 1
        yield Step(width, kills.get(number), hurried, number == edited)


def _kills(random: Random, first: int, count: int) -> dict[int, Kill]:
    """Return the kills of a block of changes, each kind at most once."""
    victims = random.sample(VICTIMS, min(len(VICTIMS), count))
    places = random.sample(range(first, first + count), len(victims))
    return {
        place: CHANCES.kill(random, victim) for place, victim in zip(places, victims, strict=True)
    }
