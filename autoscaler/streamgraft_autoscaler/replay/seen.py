"""The model of a region that works: what its demand was computed from says what to simulate."""

import math

from streamgraft_autoscaler.demand import Demand
from streamgraft_autoscaler.readiness import NotReadyError, Reason
from streamgraft_autoscaler.replay.region import BATCH_SECONDS, RegionModel
from streamgraft_autoscaler.stage import StageDemand


def seen_model(demand: Demand, first: str, launch_seconds: float) -> RegionModel:
    """Return the model of the region that has this demand: of its tightest stage, the one whose
    channels are busy all the time first. `first`: the stage that the region's records arrive at.

    Channels start in `launch_seconds`. Raises NotReadyError while a stage that gets records has
    shown no capacity, or nobody can say which share of the records a stage gets.
    """
    arriving = demand.stages[first].load.input_rate if first in demand.stages else math.nan
    rates = {
        name: _region_rate(name, stage, 1.0 if name == first else _share(stage, arriving))
        for name, stage in demand.stages.items()
    }
    tightest = min(rates, key=lambda name: rates[name], default="")
    load = demand.stages[tightest].load if tightest else None
    if load is None or load.capacity is None or not 0 < rates[tightest] < math.inf:
        raise _unknown("the region")
    seen, rate = load.capacity, rates[tightest]
    # What is known at one width, as the model has it: from one channel on.
    alone = 1.0 + seen.loss_per_channel * (seen.width - 1)
    return RegionModel(
        true_rate=rate * alone,
        shards=demand.policy.shards,
        loss_per_channel=seen.loss_per_channel / alone,
        largest_shard=load.largest_shard,
        median_shard=load.median_shard,
        batch_seconds=load.batch_seconds or BATCH_SECONDS,
        batch_cost_seconds=0.0,  # the busy time that the rate was learned from has it
        launch_seconds=launch_seconds,
        pause_seconds=demand.policy.pause.seconds,
    )


def _share(stage: StageDemand, arriving: float) -> float:
    """Return the records that a stage gets for each one of the region, NaN if none arrives."""
    return stage.load.input_rate / arriving if arriving > 0 else math.nan


def _region_rate(name: str, stage: StageDemand, share: float) -> float:
    """Return the records/s of the region that a busy channel does at a stage."""
    if math.isnan(share):
        message = f"nothing arrives now, so nobody knows how many of the records stage {name} gets"
        raise NotReadyError(Reason.NO_DATA, message)
    if share <= 0:
        return math.inf
    if stage.load.capacity is None:
        raise _unknown(f"stage {name}")
    return stage.load.capacity.true_rate / share


def _unknown(who: str) -> NotReadyError:
    message = f"{who} has not shown yet what a busy channel can do"
    return NotReadyError(Reason.WARMING_UP, message)
