"""What the demo sees while it runs, as plain values; seconds count from the replay's start."""

from dataclasses import dataclass, field
from typing import Any

from streamgraft_common import names
from streamgraft_common.timestamps import from_rfc3339


@dataclass(frozen=True)
class Sample:
    """One second of the run. None: not known at that moment."""

    seconds: float
    time_of_day: str
    sent: int
    processed: int
    """Flights in the results."""
    width_wanted: int
    """`spec.width`, which the HPA writes through /scale."""
    width_serving: int
    """`status.width`: channels that own shards."""
    demand: float | None
    """The signal, as the HPA last saw it."""
    utilization: float | None
    """Busy share of the channels (Prometheus)."""
    channel_rate: float | None
    """Flights/s that a busy channel does, as the adapter knows then."""
    condition: str
    """What the HPA last said about itself."""

    @property
    def waiting(self) -> int:
        """Flights that are sent and not in the result yet: counted at both ends, so no sample is
        missing."""
        return self.sent - self.processed


@dataclass(frozen=True)
class Decision:
    """One rescale by the HPA, in its own words, and why the signal asked for it."""

    seconds: float
    width: int
    message: str
    why: str = ""


@dataclass(frozen=True)
class Pod:
    """One pod of the job."""

    name: str
    uid: str
    pe: str | None
    """None: it waits in the warm pool."""
    region: str | None
    restarts: int
    start_seconds: float | None = field(default=None, compare=False)
    """From its creation until it was ready; None: it is not."""

    @classmethod
    def of(cls, pod: dict[str, Any]) -> "Pod":
        """Take what matters from a Pod object."""
        metadata = pod["metadata"]
        status = pod.get("status", {})
        containers = status.get("containerStatuses", [])
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            pe=metadata["labels"].get(names.LABEL_PE),
            region=metadata["labels"].get(names.LABEL_REGION),
            restarts=sum(container.get("restartCount", 0) for container in containers),
            start_seconds=_start_seconds(metadata, status),
        )


def _start_seconds(metadata: dict[str, Any], status: dict[str, Any]) -> float | None:
    for condition in status.get("conditions", []):
        if (condition["type"], condition["status"]) == ("Ready", "True"):
            ready = from_rfc3339(condition["lastTransitionTime"])
            return ready - from_rfc3339(metadata["creationTimestamp"])
    return None


def neighbours(pods: list[Pod]) -> dict[str, Pod]:
    """Return the pods of PEs outside of the region, by PE."""
    return {pod.pe: pod for pod in pods if pod.pe is not None and pod.region is None}


def channels(pods: list[Pod]) -> list[Pod]:
    """Return the pods of the region's PEs."""
    return [pod for pod in pods if pod.pe is not None and pod.region is not None]


@dataclass
class Observations:
    """Everything seen so far; the report is made of it."""

    samples: list[Sample] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    neighbours_before: dict[str, Pod] = field(default_factory=dict)
    neighbours_after: dict[str, Pod] = field(default_factory=dict)
    prepared: set[str] = field(default_factory=set)
    """Uids of the pods that were there before the first flight, those of the warm pool too."""
    starts: list[float] = field(default_factory=list)
    """How long these took to be ready: seconds."""
    first_wave: list[Pod] = field(default_factory=list)
    """The channels' pods when the region has become wider for the first time."""
    failures: list[str] = field(default_factory=list)
    """What could not be read, at most once per message."""

    def fail(self, message: str) -> None:
        """Remember what could not be read."""
        if message not in self.failures:
            self.failures.append(message)


def hpa_message(autoscaler: dict[str, Any]) -> str:
    """Return the HPA's conditions in one line: the one that hinders it, else what it does.

    Of a long message about a signal the end is returned, which is the metrics adapter's own.
    """
    conditions = {item["type"]: item for item in autoscaler["status"].get("conditions", [])}
    for kind in ("ScalingActive", "AbleToScale"):
        if conditions.get(kind, {}).get("status") == "False":
            reason, message = conditions[kind]["reason"], conditions[kind]["message"]
            return str(message.partition(" has no value: ")[2]) or f"{reason}: {message}"
    last = conditions.get("AbleToScale", {})
    limited = conditions.get("ScalingLimited", {})
    if limited.get("status") == "True":
        last = limited
    return str(last.get("reason", "not seen yet"))


def hpa_metric(autoscaler: dict[str, Any]) -> float | None:
    """Return the first metric's current value (of an Object metric with AverageValue: the total).

    The HPA reports the average per replica; times the replicas it saw, that is the demand.
    """
    status = autoscaler["status"]
    for metric in status.get("currentMetrics") or []:
        current = metric.get("object", {}).get("current", {})
        if "averageValue" in current:
            return quantity(current["averageValue"]) * int(status.get("currentReplicas", 0))
        if "value" in current:
            return quantity(current["value"])
    return None


def quantity(text: str) -> float:
    """Return the number of a Kubernetes quantity with an SI suffix up to kilo: 2500m is 2.5."""
    factors = {"m": 1e-3, "u": 1e-6, "n": 1e-9, "k": 1e3}
    return float(text[:-1]) * factors[text[-1]] if text[-1] in factors else float(text)
