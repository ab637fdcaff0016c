"""What is known of every stage's capacity: learned at each refresh, kept in memory."""

import math
from collections.abc import Collection, Iterator

from streamgraft_autoscaler import Capacity, CapacityLearner, CapacitySample, Window
from streamgraft_metrics_adapter.prometheus.observations import RegionObservation, StageObservation
from streamgraft_metrics_adapter.prometheus.queries import Input
from streamgraft_metrics_adapter.regions import Region, RegionKey


class Capacities:
    """The learners of all stages of all regions; `window_seconds`: over which rates are taken."""

    def __init__(self, window_seconds: float) -> None:
        self._window_seconds = window_seconds
        self._learners: dict[RegionKey, dict[str, CapacityLearner]] = {}

    def learn(self, region: Region, seen: RegionObservation, evaluated_at: float) -> None:
        """Learn from what one refresh, at that Unix time, saw of a region."""
        learners = self._learners.setdefault(region.key, {})
        for index, stage in seen.stages.items():
            window = self._window(stage, region.width, evaluated_at)
            if window is not None:
                learners.setdefault(index, CapacityLearner()).observe(window)

    def of(self, key: RegionKey, now: float) -> dict[str, Capacity]:
        """Return the capacities that are known at the Unix time `now`, by stage."""
        known: dict[str, Capacity] = {}
        for index, learner in self._learners.get(key, {}).items():
            capacity = learner.capacity(now)
            if capacity is not None:
                known[index] = capacity
        return known

    def samples(self, now: float) -> Iterator[tuple[RegionKey, str, CapacitySample]]:
        """Yield what counts at the Unix time `now`, with region and stage."""
        for key, learners in list(self._learners.items()):
            for index, learner in list(learners.items()):
                for sample in list(learner.samples(now)):
                    yield key, index, sample

    def adopt(self, key: RegionKey, index: str, sample: CapacitySample) -> None:
        """Take over what another replica has learned of a stage."""
        learners = self._learners.setdefault(key, {})
        learners.setdefault(index, CapacityLearner()).adopt(sample)

    def keep(self, keys: Collection[RegionKey]) -> None:
        """Forget all regions but these."""
        self._learners = {key: found for key, found in self._learners.items() if key in keys}

    def _window(self, stage: StageObservation, width: int, ended_at: float) -> Window | None:
        names = (Input.PROCESSING_RATE, Input.BUSY_SLOTS, Input.WARM_SLOTS, Input.SLOTS)
        rate, busy, warm, slots = (stage.values.get(name, math.nan) for name in names)
        if not all(map(math.isfinite, (rate, busy, warm, slots))) or slots <= 0:
            return None
        return Window(ended_at, self._window_seconds, rate, busy / slots, warm / slots, width)
