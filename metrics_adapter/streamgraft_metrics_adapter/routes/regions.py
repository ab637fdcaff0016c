"""Regions by REST: signals with inputs and reasons, history, decisions, live views, and width."""

from collections.abc import Awaitable
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query
from starlette.responses import StreamingResponse

from streamgraft_common.kube import KubeClient, Unreachable
from streamgraft_common.resources import PARALLEL_REGION, WidthChange
from streamgraft_metrics_adapter import selectors
from streamgraft_metrics_adapter.live import LiveViews
from streamgraft_metrics_adapter.provider import Provider
from streamgraft_metrics_adapter.regions import Region
from streamgraft_metrics_adapter.routes.views import (
    DecisionView,
    Page,
    RegionView,
    SampleView,
    ScaleView,
    WidthWanted,
    decision_view,
    region_view,
    sample_view,
)
from streamgraft_metrics_adapter.status import BadRequestError, UnavailableError

_SPACE = "/api/v1/namespaces/{namespace}"
_REGION = _SPACE + "/regions/{name}"

Limit = Annotated[int, Query(ge=1, le=500, description="Items at most.")]
Continue = Annotated[str, Query(alias="continue", max_length=300)]
Labels = Annotated[str, Query(alias="labelSelector", max_length=4096)]
Name = Annotated[str, Path(max_length=253, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")]


def routes(provider: Provider, client: KubeClient) -> APIRouter:
    """Return the REST routes; they need a token or a client certificate of the cluster."""
    router = APIRouter(tags=["regions"])
    _add_views(router, provider)
    _add_past(router, provider)
    _add_streams(router, provider)
    _add_scale(router, client)
    return router


def _add_views(router: APIRouter, provider: Provider) -> None:
    @router.get(
        _SPACE + "/regions",
        summary="The regions of a namespace with their signals, by name",
        response_model_exclude_none=True,
    )
    async def regions(
        namespace: Name, label_selector: Labels = "", limit: Limit = 100, after: Continue = ""
    ) -> Page[RegionView]:
        found = provider.regions(namespace, selectors.parse(label_selector))
        rest = [region for region in found if region.name > after]
        items = [_view(provider, region) for region in rest[:limit]]
        return Page(items=items, continue_=items[-1].name if len(rest) > limit else None)

    @router.get(
        _REGION,
        summary="A region: every signal with its inputs, or why it has no value",
        response_model_exclude_none=True,
    )
    async def region(namespace: Name, name: Name) -> RegionView:
        return _view(provider, provider.region(namespace, name))


def _add_past(router: APIRouter, provider: Provider) -> None:
    @router.get(_REGION + "/history", summary="The signals of the last hour, oldest first")
    async def history(
        namespace: Name,
        name: Name,
        since: Annotated[float, Query(description="Unix time.")] = 0.0,
        limit: Limit = 500,
        after: Continue = "",
    ) -> Page[SampleView]:
        provider.region(namespace, name)
        start = max(since, _number(after)) if after else since
        samples = provider.history.of((namespace, name), start)
        items = [sample_view(sample) for sample in samples[:limit]]
        return Page(items=items, continue_=repr(items[-1].time) if len(samples) > limit else None)

    @router.get(_REGION + "/decisions", summary="Changes of the wanted width, newest first")
    async def decisions(
        namespace: Name, name: Name, limit: Limit = 100, after: Continue = ""
    ) -> Page[DecisionView]:
        changes = provider.region(namespace, name).status.changes[::-1]
        rest = [change for change in changes if not after or change.requested_at < after]
        items = [
            decision_view(change, provider.history.before((namespace, name), _unix(change)))
            for change in rest[:limit]
        ]
        return Page(items=items, continue_=items[-1].requested_at if len(rest) > limit else None)


def _add_streams(router: APIRouter, provider: Provider) -> None:
    live = LiveViews(provider)

    @router.get(
        _SPACE + "/stream",
        summary="The regions of a namespace, live: an event after each refresh",
        response_class=_EventStream,
    )
    async def stream_regions(namespace: Name, label_selector: Labels = "") -> _EventStream:
        selector = selectors.parse(label_selector)

        def document() -> str:
            found = provider.regions(namespace, selector)
            page = Page[RegionView](items=[_view(provider, region) for region in found])
            return page.model_dump_json(by_alias=True, exclude_none=True)

        return _EventStream(live.events(document))

    @router.get(
        _REGION + "/stream",
        summary="A region, live: an event after each refresh",
        response_class=_EventStream,
    )
    async def stream_region(namespace: Name, name: Name) -> _EventStream:
        provider.region(namespace, name)

        def document() -> str:
            found = _view(provider, provider.region(namespace, name))
            return found.model_dump_json(by_alias=True, exclude_none=True)

        return _EventStream(live.events(document))


def _add_scale(router: APIRouter, client: KubeClient) -> None:
    @router.get(_REGION + "/scale", summary="The wanted and the serving width")
    async def read_scale(namespace: Name, name: Name) -> ScaleView:
        return _scale(await _called(client.get(_scale_path(namespace, name))))

    @router.put(_REGION + "/scale", summary="Set the width, through the API server's /scale")
    async def write_scale(namespace: Name, name: Name, wanted: WidthWanted) -> ScaleView:
        body = {"spec": {"replicas": wanted.width}}
        return _scale(await _called(client.patch(_scale_path(namespace, name), body)))


class _EventStream(StreamingResponse):
    media_type = "text/event-stream"


def _view(provider: Provider, region: Region) -> RegionView:
    return region_view(region, provider.read_all(region))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise BadRequestError(f"continue: {text!r} did not come from here") from error


def _unix(change: WidthChange) -> float:
    return datetime.fromisoformat(change.requested_at).timestamp()


def _scale_path(namespace: str, name: str) -> str:
    return f"{PARALLEL_REGION.path(quote(namespace, safe=''), quote(name, safe=''))}/scale"


async def _called(pending: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    try:
        return await pending
    except Unreachable as error:
        raise UnavailableError(str(error)) from error


def _scale(scale: dict[str, Any]) -> ScaleView:
    return ScaleView(
        width=scale["spec"].get("replicas", 0), serving=scale.get("status", {}).get("replicas", 0)
    )
