"""What a torture run of a consistent region does, decided by its seed: rounds, and their kills.

Each round asks for a cut, a rollback or a width change, and strikes something while that is under
way.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Literal, get_args

from tests.e2e.torture.schedule import PLACES, Chances, Kill, Means, Victim

Moment = Literal["cut", "rollback", "width"]
MOMENTS: tuple[Moment, ...] = get_args(Moment)
Policy = Literal["never", "failure"]
"""What has the region go back by itself."""
POLICIES: tuple[Policy, ...] = get_args(Policy)
VICTIMS: tuple[Victim, ...] = (*PLACES, "operator", "kafka", "repository")
OF_PODS: tuple[Means, ...] = ("kill", "delete", "freeze", "memory", "disk")

BLOCK = len(MOMENTS) * len(VICTIMS)
"""In so many rounds each kind of victim is struck once in each kind of moment."""
POLICY_ROUNDS = 3
"""After so many rounds the application is edited: it has the other policy."""
MAX_WIDTH = 2
CHANCES = Chances(
    OF_PODS, latest=2.0, freezes=(3.0, 20.0), disk=5.0, backlogs=0.4, away=(0.0, 10.0)
)
"""Kills count from when it is seen that what was asked for is under way. The operator's lease is
over after 15 s."""
DOUBLE = 0.3
"""Share of rounds with a second kill, of another victim, behind the first."""


@dataclass(frozen=True)
class Round:
    """One round: what is asked for, at which width, under which policy, and what is struck then."""

    moment: Moment
    width: int
    """That the parallel region has at the end."""
    policy: Policy
    kills: tuple[Kill, ...]
    """One behind the other; the first one counts from when the moment has come."""

    def __str__(self) -> str:
        asked = f"width {self.width}" if self.moment == "width" else self.moment
        return f"{asked} ({self.policy}), {', then '.join(map(str, self.kills))}"


def rounds(seed: int, count: int) -> Iterator[Round]:
    """Yield the rounds of a run; the region has width 1 before."""
    random = Random(seed)
    width, pairs = 1, list[tuple[Moment, Victim]]()
    for number in range(count):
        if number % BLOCK == 0:
            pairs = random.sample([*product(MOMENTS, VICTIMS)], BLOCK)
        moment, victim = pairs[number % BLOCK]
        if moment == "width":
            width = random.choice([other for other in range(1, MAX_WIDTH + 1) if other != width])
        kills = [CHANCES.kill(random, victim)]
        if random.random() < DOUBLE:
            others = [other for other in VICTIMS if other != victim]
            kills.append(CHANCES.kill(random, random.choice(others)))
        policy = POLICIES[number // POLICY_ROUNDS % len(POLICIES)]
        yield Round(moment, width, policy, tuple(kills))
