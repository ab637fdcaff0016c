"""What-if: a policy is tried on a recorded load before it is switched on."""

from streamgraft_autoscaler.replay.region import RegionModel
from streamgraft_autoscaler.replay.run import Experiment, Replay, Sample, replay
from streamgraft_autoscaler.replay.trace import (
    Trace,
    TraceError,
    from_points,
    read_csv,
    read_prometheus,
)

__all__ = [
    "Experiment",
    "RegionModel",
    "Replay",
    "Sample",
    "Trace",
    "TraceError",
    "from_points",
    "read_csv",
    "read_prometheus",
    "replay",
]
