"""Loads of a region with one stage, and what it demands."""

import dataclasses
from typing import Any

from streamgraft_autoscaler import (
    Capacity,
    Demand,
    DemandPolicy,
    StageLoad,
    Surroundings,
    demand,
)
from streamgraft_autoscaler.capacity import loss_per_channel
from streamgraft_autoscaler.pause import ExpectedPause
from streamgraft_autoscaler.pricing import ChangePrice

POLICY = DemandPolicy(
    min_width=1,
    max_width=16,
    shards=16,
    target_utilization=0.8,
    headroom=0.0,
    price=ChangePrice.given(0.0),
    catch_up_seconds=60.0,
    pause=ExpectedPause(0.0, 0.0, 0.0, 0),
)


def capacity(rate: float = 100.0, width: int = 1, **by_width: float) -> Capacity:
    """Return the capacity of `rate` records/s per busy channel, seen at high load."""
    others = {int(name.removeprefix("at_")): value for name, value in by_width.items()}
    rates = {width: rate, **others}
    loss = loss_per_channel(width, rates)
    return Capacity(rate, width, 0.5, 0.0, rates, loss, loss)


STEADY = StageLoad(input_rate=300.0, lag=0.0, capacity=capacity())


def demanded(
    stage: StageLoad, width: int = 1, policy: DemandPolicy = POLICY, **surroundings: Any
) -> Demand:
    """Return the demand of a region with one stage, which must be ready."""
    around = dataclasses.replace(Surroundings(width), **surroundings)
    return demand({"0": stage}, policy, around)


def loaded(input_rate: float, **values: Any) -> StageLoad:
    """Return a load at 100 records/s per busy channel."""
    return dataclasses.replace(STEADY, input_rate=input_rate, **values)
