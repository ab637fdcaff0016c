"""Regions by REST: signals with inputs and reasons, history, decisions, live views, and width."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query

from streamgraft_common import names
from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.resources import WidthChange
from streamgraft_common.timestamps import from_rfc3339
from streamgraft_metrics_adapter import selectors
from streamgraft_metrics_adapter.access.authentication import bearer
from streamgraft_metrics_adapter.api.routes import scale
from streamgraft_metrics_adapter.api.routes.answers import (
    DecisionAnswer,
    Page,
    RegionAnswer,
    ReplayAnswer,
    SampleAnswer,
    ScaleAnswer,
    WidthWanted,
    decision_answer,
    region_answer,
    replay_answer,
    sample_answer,
)
from streamgraft_metrics_adapter.api.routes.live import EventStream, LiveViews
from streamgraft_metrics_adapter.api.routes.replays import Replays
from streamgraft_metrics_adapter.signals.provider import Provider
from streamgraft_metrics_adapter.status import BadRequestError

_SPACE = "/api/v1/namespaces/{namespace}"
_REGION = _SPACE + "/regions/{name}"

Limit = Annotated[int, Query(ge=1, le=500, description="Items at most.")]
Continue = Annotated[str, Query(alias="continue", max_length=300)]
Labels = Annotated[str, Query(alias="labelSelector", max_length=4096)]
Target = Annotated[
    float,
    Query(alias="targetUtilization", ge=0.05, le=1, description="Wanted busy share of a channel."),
]
Authorization = Annotated[str, Header(include_in_schema=False)]
Name = Annotated[str, Path(max_length=names.MAX_OBJECT_NAME, pattern=names.OBJECT_NAME)]


def routes(provider: Provider, cluster: KubeConfig) -> APIRouter:
    """Return the REST routes; they need a token or a client certificate of the cluster."""
    router = APIRouter(tags=["regions"])
    _add_views(router, provider)
    _add_past(router, provider)
    _add_replay(router, Replays(provider))
    _add_streams(router, provider)
    _add_scale(router, provider, cluster)
    return router


def _add_views(router: APIRouter, provider: Provider) -> None:
    @router.get(
        _SPACE + "/regions",
        summary="The regions of a namespace with their signals, by name",
        response_model_exclude_none=True,
    )
    async def regions(
        namespace: Name, label_selector: Labels = "", limit: Limit = 100, after: Continue = ""
    ) -> Page[RegionAnswer]:
        found = provider.regions(namespace, selectors.parse(label_selector))
        rest = [region for region in found if region.name > after]
        items = [region_answer(region, provider.read_all(region)) for region in rest[:limit]]
        return Page(items=items, continue_=items[-1].name if len(rest) > limit else None)

    @router.get(
        _REGION,
        summary="A region: every signal with its inputs, or why it has no value",
        response_model_exclude_none=True,
    )
    async def region(namespace: Name, name: Name) -> RegionAnswer:
        found = provider.region(namespace, name)
        return region_answer(found, provider.read_all(found))


def _add_past(router: APIRouter, provider: Provider) -> None:
    @router.get(_REGION + "/history", summary="The signals of the last hour, oldest first")
    async def history(
        namespace: Name,
        name: Name,
        since: Annotated[float, Query(description="Unix time.")] = 0.0,
        limit: Limit = 500,
        after: Continue = "",
    ) -> Page[SampleAnswer]:
        provider.region(namespace, name)
        start = max(since, _number(after)) if after else since
        samples = provider.history.of((namespace, name), start)
        items = [sample_answer(sample) for sample in samples[:limit]]
        return Page(items=items, continue_=repr(items[-1].time) if len(samples) > limit else None)

    @router.get(_REGION + "/decisions", summary="Changes of the wanted width, newest first")
    async def decisions(
        namespace: Name, name: Name, limit: Limit = 100, after: Continue = ""
    ) -> Page[DecisionAnswer]:
        changes = provider.region(namespace, name).status.changes[::-1]
        rest = [change for change in changes if not after or change.requested_at < after]
        items = [
            decision_answer(change, provider.history.before((namespace, name), _unix(change)))
            for change in rest[:limit]
        ]
        return Page(items=items, continue_=items[-1].requested_at if len(rest) > limit else None)


def _add_replay(router: APIRouter, replays: Replays) -> None:
    @router.get(
        _REGION + "/replay",
        summary="The last hour, simulated with another target utilization; and as it really was",
    )
    async def replay(namespace: Name, name: Name, target: Target) -> ReplayAnswer:
        return replay_answer(await replays.of(namespace, name, target))


def _add_streams(router: APIRouter, provider: Provider) -> None:
    live = LiveViews(provider)

    @router.get(
        _SPACE + "/stream",
        summary="The regions of a namespace, live: an event after each refresh",
        response_class=EventStream,
    )
    async def stream_regions(namespace: Name, label_selector: Labels = "") -> EventStream:
        selector = selectors.parse(label_selector)
        return live.stream(lambda: provider.regions(namespace, selector))

    @router.get(
        _REGION + "/stream",
        summary="A region, live: the same events with this one only",
        response_class=EventStream,
    )
    async def stream_region(namespace: Name, name: Name) -> EventStream:
        provider.region(namespace, name)
        return live.stream(lambda: [provider.region(namespace, name)])


def _add_scale(router: APIRouter, provider: Provider, cluster: KubeConfig) -> None:
    @router.get(_REGION + "/scale", summary="The wanted and the serving width")
    async def read_scale(namespace: Name, name: Name) -> ScaleAnswer:
        region = provider.region(namespace, name)
        return ScaleAnswer(width=region.spec.width, serving=region.status.width)

    @router.put(
        _REGION + "/scale",
        summary="Set the width, through the API server's /scale, with the caller's bearer token",
    )
    async def write_scale(
        namespace: Name, name: Name, wanted: WidthWanted, authorization: Authorization = ""
    ) -> ScaleAnswer:
        return await scale.written(cluster, bearer(authorization), namespace, name, wanted.width)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise BadRequestError(f"continue: {text!r} did not come from here") from error


def _unix(change: WidthChange) -> float:
    return from_rfc3339(change.requested_at)
