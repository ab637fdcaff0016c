"""Regions by REST: their signals with inputs and reasons, their history, and their width."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from streamgraft_autoscaler import NotReady
from streamgraft_common.kube import KubeClient, Unreachable
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_metrics_adapter import selectors
from streamgraft_metrics_adapter.provider import Provider, Reading
from streamgraft_metrics_adapter.regions import Region
from streamgraft_metrics_adapter.status import UnavailableError
from streamgraft_metrics_adapter.wire import timestamp

_NAMESPACE = "/api/v1/namespaces/{namespace}/regions"
_REGION = _NAMESPACE + "/{name}"


class Width(BaseModel):
    """The wanted width of a region."""

    width: Annotated[int, Field(ge=1, strict=True, description="Channels; 1 to maxWidth.")]


def routes(provider: Provider, client: KubeClient) -> APIRouter:
    """Return the REST routes; they need a token or a client certificate of the cluster."""
    router = APIRouter(tags=["regions"])

    @router.get(_NAMESPACE, summary="All regions of a namespace with the values of their signals")
    async def regions(
        namespace: str, label_selector: Annotated[str, Query(alias="labelSelector")] = ""
    ) -> dict[str, Any]:
        found = provider.regions(namespace, selectors.parse(label_selector))
        return {"items": [_described(provider, region) for region in found]}

    @router.get(_REGION, summary="A region: every signal with its inputs, or why it has no value")
    async def region(namespace: str, name: str) -> dict[str, Any]:
        return _described(provider, provider.region(namespace, name))

    @router.get(_REGION + "/history", summary="The signals of the last hour")
    async def history(namespace: str, name: str, since: float = 0.0) -> dict[str, Any]:
        provider.region(namespace, name)
        samples = provider.history.of((namespace, name), since)
        return {"items": [sample.to_wire() for sample in samples]}

    @router.get(_REGION + "/scale", summary="The wanted and the serving width")
    async def read_scale(namespace: str, name: str) -> dict[str, Any]:
        return _scale(await _called(client.get(_scale_path(namespace, name))))

    @router.put(_REGION + "/scale", summary="Set the width, through the API server's /scale")
    async def write_scale(namespace: str, name: str, wanted: Width) -> dict[str, Any]:
        body = {"spec": {"replicas": wanted.width}}
        return _scale(await _called(client.patch(_scale_path(namespace, name), body)))

    return router


def _scale_path(namespace: str, name: str) -> str:
    return f"{PARALLEL_REGION.path(namespace, name)}/scale"


async def _called(pending: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = await pending
    except Unreachable as error:
        raise UnavailableError(str(error)) from error
    return answer


def _scale(scale: dict[str, Any]) -> dict[str, Any]:
    return {
        "width": scale["spec"].get("replicas", 0),
        "serving": scale.get("status", {}).get("replicas", 0),
    }


def _described(provider: Provider, region: Region) -> dict[str, Any]:
    readings = provider.read_all(region)
    return {
        "namespace": region.namespace,
        "name": region.name,
        "job": region.spec.job,
        "region": region.spec.region,
        "width": region.spec.width,
        "serving": region.status.width,
        "maxWidth": region.spec.max_width,
        "resizing": region.resizing is not None,
        "signals": {reading.metric: _explained(reading) for reading in readings},
    }


def _explained(reading: Reading) -> dict[str, Any]:
    result = reading.result
    sampled = {} if reading.sampled_at is None else {"sampledAt": timestamp(reading.sampled_at)}
    if isinstance(result, NotReady):
        return {"reason": result.reason.value, "message": result.message, **sampled}
    inputs = asdict(result)
    return {"value": inputs.pop("value"), "inputs": inputs, **sampled}
