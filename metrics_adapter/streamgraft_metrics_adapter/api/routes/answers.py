"""What the REST routes answer, as OpenAPI describes it."""

from dataclasses import asdict
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from streamgraft_autoscaler import FIRST_STAGE, Demand, NotReady, NotReadyError
from streamgraft_autoscaler.replay import seen_model
from streamgraft_common.resources import WidthChange
from streamgraft_common.timestamps import to_rfc3339
from streamgraft_metrics_adapter.regions import Region
from streamgraft_metrics_adapter.signals.history import Sample
from streamgraft_metrics_adapter.signals.provider import Reading
from streamgraft_metrics_adapter.signals.what_if import WhatIf, launch_seconds

Item = TypeVar("Item")


class Answer(BaseModel):
    """An answer."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class SignalAnswer(Answer):
    """A signal: its value with the inputs it follows from, or why it has none."""

    value: float | None = None
    inputs: dict[str, Any] | None = None
    reason: str | None = None
    message: str | None = None
    sampled_at: str | None = Field(default=None, description="Of the oldest sample, RFC 3339.")


class ModelAnswer(Answer):
    """What to simulate the region by, as it was seen: its tightest stage."""

    true_rate: float = Field(description="The region's records/s that a busy channel does alone.")
    loss_per_channel: float = Field(description="Share of it that each further channel costs.")
    largest_shard: float = Field(description="Share of the records that the fullest shard gets.")
    median_shard: float = Field(description="Share that half of the shards get at most.")
    batch_seconds: float
    batch_cost_seconds: float = Field(description="Of a batch without records; the rate has it.")
    launch_seconds: float = Field(description="Until a new channel is warm.")
    pause_seconds: float = Field(description="How long shards stand still in a width change.")


class RegionAnswer(Answer):
    """A region as it is now."""

    namespace: str
    name: str
    job: str
    region: str
    width: int = Field(description="Channels wanted.")
    serving: int = Field(description="Channels that own shards.")
    max_width: int
    resizing: bool
    asleep: bool = Field(description="Whether it has no channels, and none is being started.")
    signals: dict[str, SignalAnswer]
    model: ModelAnswer | None = Field(description="null while too little is known.")


class SampleAnswer(Answer):
    """A moment of a region's past: channels, records/s; null where there was no value."""

    time: float = Field(description="Unix time.")
    width: int
    wanted_width: int
    input_rate: float | None
    processing_rate: float | None
    signals: dict[str, float | None]


class DecisionAnswer(Answer):
    """A change of the wanted width, what came of it, and the signals just before it."""

    requested_at: str
    from_width: int
    to_width: int
    serving_at: str | None
    finished_at: str | None
    pause_seconds_max: float | None
    signals: dict[str, float | None] | None = Field(
        description="null if the adapter does not remember that time"
    )


class FiguresAnswer(Answer):
    """What a time came to."""

    changes: int = Field(description="Changes of the wanted width.")
    channel_hours: float = Field(description="Channels that start included.")
    largest_backlog: float | None = Field(
        description="Most records not committed; null if that is not known at any time."
    )


class StepAnswer(Answer):
    """A moment of a replay: channels, records that are not committed, and the wait in seconds."""

    time: float = Field(description="Unix time.")
    width: int
    wanted_width: int
    lag: float
    wait_seconds: float


class ReplayAnswer(Answer):
    """The last hour with another target utilization, beside what really happened."""

    target_utilization: float
    seconds: float = Field(description="Time of which a rate is known; the rest does not count.")
    steps: list[StepAnswer]
    replayed: FiguresAnswer
    happened: FiguresAnswer
    longest_wait_seconds: float = Field(description="In the replay.")


class Page(Answer, Generic[Item]):
    """Some of the items; `continue` is to be passed on for the next ones, null after the last."""

    items: list[Item]
    continue_: Annotated[str | None, Field(alias="continue")] = None


class ScaleAnswer(Answer):
    """The wanted and the serving width (channels)."""

    width: int
    serving: int


class WidthWanted(BaseModel):
    """The wanted width of a region."""

    width: Annotated[
        int, Field(ge=0, strict=True, description="Channels; 1 to maxWidth, 0 where it may sleep.")
    ]


def region_answer(region: Region, readings: list[Reading]) -> RegionAnswer:
    """Return a region with its signals."""
    return RegionAnswer(
        namespace=region.namespace,
        name=region.name,
        job=region.spec.job,
        region=region.spec.region,
        width=region.spec.width,
        serving=region.status.width,
        max_width=region.spec.max_width,
        resizing=region.resizing is not None,
        asleep=region.status.asleep and region.resizing is None,
        signals={reading.metric: _signal_answer(reading) for reading in readings},
        model=_model(region, readings),
    )


def _model(region: Region, readings: list[Reading]) -> ModelAnswer | None:
    demand = next((item.result for item in readings if isinstance(item.result, Demand)), None)
    if demand is None:
        return None
    try:
        seen = seen_model(demand, FIRST_STAGE, launch_seconds(region.status.changes))
    except NotReadyError:
        return None
    return ModelAnswer.model_validate(asdict(seen))


def _signal_answer(reading: Reading) -> SignalAnswer:
    result = reading.result
    sampled_at = None if reading.sampled_at is None else to_rfc3339(reading.sampled_at, "seconds")
    if isinstance(result, NotReady):
        return SignalAnswer(
            reason=result.reason.value, message=result.message, sampled_at=sampled_at
        )
    inputs = asdict(result)
    return SignalAnswer(value=inputs.pop("value"), inputs=inputs, sampled_at=sampled_at)


def sample_answer(sample: Sample) -> SampleAnswer:
    """Return a sample of the history."""
    return SampleAnswer.model_validate(asdict(sample))


def replay_answer(found: WhatIf) -> ReplayAnswer:
    """Return a replay of the last hour."""
    return ReplayAnswer.model_validate(asdict(found))


def decision_answer(change: WidthChange, before: Sample | None) -> DecisionAnswer:
    """Return a width change with what was known when it was asked for."""
    return DecisionAnswer(
        requested_at=change.requested_at,
        from_width=change.from_width,
        to_width=change.to_width,
        serving_at=change.serving_at,
        finished_at=change.finished_at,
        pause_seconds_max=change.pause_seconds_max,
        signals=dict(before.signals) if before else None,
    )
