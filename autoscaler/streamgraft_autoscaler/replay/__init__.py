"""What-if: a policy is tried on a recorded load before it is switched on."""

from streamgraft_autoscaler.replay.region import LAUNCH_SECONDS, RegionModel
from streamgraft_autoscaler.replay.run import (
    STEP_SECONDS,
    Experiment,
    Replay,
    Sample,
    replay,
)
from streamgraft_autoscaler.replay.seen import seen_model
from streamgraft_autoscaler.replay.trace import (
    Trace,
    TraceError,
    from_points,
    read_csv,
    read_prometheus,
)

__all__ = [
    "LAUNCH_SECONDS",
    "STEP_SECONDS",
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
    "seen_model",
]
