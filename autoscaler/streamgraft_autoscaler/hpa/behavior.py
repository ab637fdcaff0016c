"""How far and how fast: stabilization, rate limits, bounds (`horizontal.go` of Kubernetes 1.36)."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from streamgraft_autoscaler.hpa.spec import DEFAULT_SCALE_DOWN_SECONDS, Rules, Spec


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What the metrics asked for at a Unix time."""

    time: float
    replicas: int


@dataclass(frozen=True, slots=True)
class Change:
    """A rescale."""

    time: float
    """Unix time."""
    replicas: int
    """Positive for added, negative for removed ones."""


@dataclass(frozen=True, slots=True)
class Normalized:
    """A desired number of replicas after the HPA's `behavior`."""

    stabilized: int
    """After the stabilization windows."""
    replicas: int
    """After rate limits and bounds."""
    limit: str
    """The reason of the condition ScalingLimited; empty if nothing limited."""


class Memory:
    """What the controller remembers of an HPA: recommendations, and its own rescales."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._recommendations: list[Recommendation] = []
        self._changes: dict[bool, list[Change]] = {True: [], False: []}

    def begin(self, now: float, replicas: int) -> None:
        """Take the width that is found as the first recommendation."""
        if not self._recommendations:
            self._recommendations.append(Recommendation(now, replicas))

    def rescaled(self, now: float, difference: int) -> None:
        """Remember a rescale, instead of one that its direction's policies don't ask for."""
        grown = difference > 0
        rules = self._spec.scale_up if grown else self._spec.scale_down
        longest = max((policy.period_seconds for policy in rules.policies), default=0)
        changes = self._changes[grown]
        outdated = [i for i, change in enumerate(changes) if change.time < now - longest]
        # Not all outdated ones go: those that stay count for longer periods of the other direction.
        if outdated:
            changes[outdated[-1]] = Change(now, difference)
        else:
            changes.append(Change(now, difference))

    def normalize(self, now: float, current: int, desired: int) -> Normalized:
        """Return what becomes of `desired` replicas, which are remembered."""
        if self._spec.behaved:
            stabilized = self._stabilized(now, current, desired)
            replicas, limit = self._limited(now, current, stabilized)
        else:
            cutoff = now - DEFAULT_SCALE_DOWN_SECONDS
            recent = [item.replicas for item in self._recommendations if item.time >= cutoff]
            stabilized = max([desired, *recent])
            replicas, limit = self._limited_by_factor(current, stabilized)
        self._remember(now, desired)
        return Normalized(stabilized, replicas, limit)

    def _changed(self, since: float) -> int:
        return sum(c.replicas for part in self._changes.values() for c in part if c.time > since)

    def _rules(self) -> tuple[Rules, Rules]:
        return self._spec.scale_up, self._spec.scale_down

    def _since(self, now: float, seconds: int) -> Iterable[int]:
        return [r.replicas for r in self._recommendations if r.time > now - seconds]

    def _remember(self, now: float, desired: int) -> None:
        longest = max(
            DEFAULT_SCALE_DOWN_SECONDS, *(rules.stabilization_seconds for rules in self._rules())
        )
        kept = [item for item in self._recommendations if item.time >= now - longest]
        self._recommendations = [*kept, Recommendation(now, desired)]

    def _stabilized(self, now: float, current: int, desired: int) -> int:
        up, down = self._rules()
        lowest = min([desired, *self._since(now, up.stabilization_seconds)])
        highest = max([desired, *self._since(now, down.stabilization_seconds)])
        return min(max(current, lowest), highest)

    def _limited(self, now: float, current: int, desired: int) -> tuple[int, str]:
        if desired > current:
            rate = max(self._rate_limit(now, current, self._spec.scale_up, +1), current)
            highest = min(self._spec.max_replicas, rate)
            if desired > highest:
                return highest, "ScaleUpLimit" if rate < self._spec.max_replicas else _MANY
        elif desired < current:
            rate = min(self._rate_limit(now, current, self._spec.scale_down, -1), current)
            lowest = max(self._spec.min_replicas, rate)
            if desired < lowest:
                return lowest, "ScaleDownLimit" if rate > self._spec.min_replicas else _FEW
        return desired, ""

    def _limited_by_factor(self, current: int, desired: int) -> tuple[int, str]:
        rate = max(2 * current, 4)
        highest = min(self._spec.max_replicas, rate)
        if desired < self._spec.min_replicas:
            return self._spec.min_replicas, _FEW
        if desired > highest:
            return highest, "ScaleUpLimit" if rate < self._spec.max_replicas else _MANY
        return desired, ""

    def _rate_limit(self, now: float, current: int, rules: Rules, sign: int) -> int:
        """Return how far the policies let it go; `sign`: +1 up, -1 down."""
        if rules.select == "Disabled":
            return current
        limits = []
        for policy in rules.policies:
            start = current - self._changed(now - policy.period_seconds)
            if policy.type == "Pods":
                limits.append(start + sign * policy.value)
            else:
                exact = start * (1 + sign * policy.value / 100)
                limits.append(math.ceil(exact) if sign > 0 else int(exact))
        furthest: Callable[[Iterable[int]], int] = max if sign > 0 else min
        nearest: Callable[[Iterable[int]], int] = min if sign > 0 else max
        return nearest(limits) if rules.select == "Min" else furthest(limits)


_MANY, _FEW = "TooManyReplicas", "TooFewReplicas"
