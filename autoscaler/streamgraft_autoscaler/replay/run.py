"""What would a policy do with a load: a trace, a simulated region, the HPA, second by second."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from streamgraft_autoscaler.fitting import Target, fit
from streamgraft_autoscaler.hpa import DEFAULT_SYNC_SECONDS, HorizontalPodAutoscaler, Scale, Spec
from streamgraft_autoscaler.pricing import ChangePrice
from streamgraft_autoscaler.readiness import NotReady
from streamgraft_autoscaler.replay.meter import Meter
from streamgraft_autoscaler.replay.region import RegionModel, SimulatedRegion
from streamgraft_autoscaler.replay.trace import Trace
from streamgraft_autoscaler.stage import DemandPolicy

STEP_SECONDS = float(DEFAULT_SYNC_SECONDS)
"""Resolution of the simulation; the HPA looks after each step."""
DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Experiment:
    """A policy, a load and a region to try it on."""

    trace: Trace
    """The load."""
    model: RegionModel
    """The region."""
    autoscaler: Spec
    """The HPA."""
    policy: DemandPolicy
    """What `demand` is asked for."""
    objective_seconds: float
    """Longest delay that a record may have."""
    window_seconds: float = 60.0
    """Over which rates are taken."""
    lag_threshold: float = 1000.0
    """Of the paper's policy, records."""
    overshoot: float = 1.0
    """Of the paper's policy, a factor."""
    forecast: bool = False
    """Whether the demand looks ahead."""
    measured_price: bool = False
    """Whether a width change is priced as the region's own past ones cost, as it is by default,
    instead of as `policy` says."""
    skip_seconds: float = 0.0
    """How much of the beginning does not count, for policies that have to learn."""

    @property
    def static_width(self) -> int:
        """Return the width that a user would set for ever: that of the trace's peak at the
        target utilization, batches' fixed cost included."""
        peak, model = max(self.trace.rates), self.model
        target = Target(self.policy.target_utilization, 0.0, model.shards)
        return fit(
            lambda width: model.busy_share(width, peak),
            model.division,
            target,
        ).needed


@dataclass(frozen=True, slots=True)
class Sample:
    """One look of the HPA."""

    seconds: float
    """Since the beginning."""
    rate: float
    """Arriving records/s."""
    lag: float
    """Records."""
    delay: float
    """Seconds that a record waits."""
    wanted: int
    """Channels."""
    serving: int
    """Channels."""
    pods: int
    """Channels that run, those that warm up included."""
    demand: float | None
    """Channels."""
    why: str
    """The HPA's message."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of an experiment."""

    experiment: Experiment
    samples: Sequence[Sample]
    price: ChangePrice
    """What a width change has to save at the end."""

    @property
    def days(self) -> float:
        """Return how long it took, in days."""
        return len(self.samples) * STEP_SECONDS / DAY_SECONDS

    @property
    def violation_ratio(self) -> float:
        """Return the share of the time in which records waited longer than the objective."""
        objective = self.experiment.objective_seconds
        late = sum(sample.delay > objective for sample in self.samples)
        return late / len(self.samples)

    @property
    def changes(self) -> list[Sample]:
        """Return the samples at which another width was wanted than before."""
        return [after for before, after in pairwise(self.samples) if after.wanted != before.wanted]

    @property
    def changes_per_day(self) -> float:
        """Return the width changes per day."""
        return len(self.changes) / self.days

    @property
    def pod_hours(self) -> float:
        """Return the hours that pods of channels ran."""
        return sum(sample.pods for sample in self.samples) * DEFAULT_SYNC_SECONDS / 3600

    @property
    def pod_hours_ratio(self) -> float:
        """Return the pod-hours as a share of those at the static width of the peak."""
        return self.pod_hours / (self.experiment.static_width * self.days * 24)

    def steps_between(self, begin: float, end: float) -> int:
        """Return how many width changes began between two moments of the trace."""
        return sum(begin < sample.seconds <= end for sample in self.changes)


def replay(experiment: Experiment, width: int) -> Replay:
    """Run an experiment from a width, one channel at least: the HPA leaves 0 only if it was the
    one that set it. Its cluster can scale to zero if it asks for that."""
    region = SimulatedRegion(experiment.model, max(width, 1))
    to_zero = experiment.autoscaler.min_replicas == 0
    hpa = HorizontalPodAutoscaler(experiment.autoscaler, scale_to_zero=to_zero)
    meter = Meter(
        experiment.policy,
        window_seconds=experiment.window_seconds,
        lag_threshold=experiment.lag_threshold,
        overshoot=experiment.overshoot,
        division=experiment.model.division,
        forecast=experiment.forecast,
        by_own_changes=experiment.measured_price,
    )
    metrics = [metric.name for metric in experiment.autoscaler.metrics]
    samples: list[Sample] = []
    now = 0.0
    while now < experiment.trace.duration_seconds:
        rate = experiment.trace.at(now)
        region.step(STEP_SECONDS, rate)
        now += STEP_SECONDS
        meter.look(now, region)
        readings = meter.readings(region, metrics)
        pods = max(region.width, region.wanted)
        scale = Scale(region.wanted, region.width, pods, region.width)
        decision = hpa.reconcile(now, scale, readings)
        region.want(decision.replicas)
        wanted = None if isinstance(meter.demand, NotReady) else meter.demand.value
        samples.append(
            Sample(
                now,
                rate,
                region.lag,
                region.delay,
                region.wanted,
                region.width,
                pods,
                wanted,
                decision.message,
            )
        )
    counted = [sample for sample in samples if sample.seconds > experiment.skip_seconds]
    return Replay(experiment, counted, meter.price(region))
