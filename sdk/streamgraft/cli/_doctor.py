"""`streamgraft doctor`: whether a cluster has all that Streamgraft needs, and how to mend it."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus

import typer

from streamgraft.cli import _output as output
from streamgraft.cli._check import Check
from streamgraft.cli._cluster import Cluster, connected
from streamgraft.cli._doctor_autoscaling import Scaling, flags_of, probe
from streamgraft.cli._doctor_checks import (
    FORWARDING,
    RIGHTS,
    Facts,
    Right,
    checks,
)
from streamgraft.cli._installation import (
    SIGNALS,
    Unseen,
    find_api_service,
    look,
    operator,
    settings_of,
    shown,
    signal_path,
    system_namespace,
    tried,
)
from streamgraft.cli._options import Target
from streamgraft_common import names
from streamgraft_common.kinds import (
    AUTOSCALER,
    CUSTOM_RESOURCE_DEFINITION,
    LEASE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
)
from streamgraft_common.kube import ApiError, Invalid
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import JOB, PARALLEL_REGION
from streamgraft_operator.manifests.autoscaler import has_tolerance

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_METRIC_GROUPS = (SIGNALS, "external.metrics.k8s.io")
_CONTROLLERS = {"labelSelector": "component=kube-controller-manager"}
_MARKS = {"good": ("✓", "green"), "bad": ("✗", "red"), "unknown": ("?", "yellow")}


def run(target: Target, form: str) -> None:
    """Print what is well and what is not. Exit code 1 if something is not."""
    found = asyncio.run(_examine(target))
    if form == "text":
        _show(found)
    else:
        output.document([asdict(check) for check in found], form)
    if any(check.state == "bad" for check in found):
        raise typer.Exit(1)


def _show(found: Sequence[Check]) -> None:
    for check in found:
        mark, color = _MARKS[check.state]
        output.say(f"{typer.style(mark, fg=color)} {check.name}: {check.text}")
        if check.mend:
            output.say(f"  → {check.mend}")


async def _examine(target: Target) -> list[Check]:
    async with connected(target) as cluster:
        version = await cluster.client.get("/version")  # nothing else is asked of one that is away
        released = _released()
        services, regions, kinds, definitions, claims, scaling = await asyncio.gather(
            _api_services(cluster),
            _items(cluster, PARALLEL_REGION.path(cluster.namespace)),
            _kinds(cluster),
            _definitions(cluster, released),
            tried(cluster, PERSISTENT_VOLUME_CLAIM.path(cluster.namespace)),
            _scaling(cluster),
        )
        system = system_namespace(shown(services[SIGNALS]))
        allowed, forwards, deployment, jobs, autoscalers, signals = await asyncio.gather(
            _allowed(cluster),
            _may(cluster, FORWARDING, system),
            operator(cluster, system),
            _items(cluster, JOB.path(cluster.namespace)),
            _items(cluster, AUTOSCALER.path(cluster.namespace)),
            _signals(cluster, regions[:20]),
        )
        lease = settings_of(deployment).get("lease", "streamgraft-operator")
        return checks(
            Facts(
                version=version["gitVersion"],
                namespace=cluster.namespace,
                kinds=kinds,
                definitions=None if definitions is None else _content_ids(definitions),
                helm=_helm_release(definitions or {}),
                released=released,
                system=system,
                deployment=deployment,
                lease=await tried(cluster, LEASE.path(system, lease)),
                claims=claims and {item["metadata"]["name"]: item for item in claims["items"]},
                api_services=services,
                allowed=allowed,
                forwards=forwards,
                jobs=jobs,
                regions=regions,
                autoscalers=autoscalers,
                signals=signals,
                scaling=scaling,
            )
        )


async def _api_services(cluster: Cluster) -> dict[str, Object | Unseen]:
    found = await asyncio.gather(*(find_api_service(cluster, it) for it in _METRIC_GROUPS))
    return dict(zip(_METRIC_GROUPS, found, strict=True))


async def _kinds(cluster: Cluster) -> frozenset[str] | None:
    """Return the plurals that the API server serves of our group; None if it knows none."""
    found = await tried(cluster, f"/apis/{names.API_VERSION}")
    return frozenset(item["name"] for item in found["resources"]) if found else None


def _released() -> dict[str, str]:
    """Return the content ids of this release's definitions, by name."""
    from streamgraft_local.resources import definitions

    return {item["metadata"]["name"]: _content_id(item) for item in definitions()}


async def _definitions(cluster: Cluster, wanted: Iterable[str]) -> dict[str, Object] | None:
    """Return those that are installed, by name; None if we may not read them."""
    paths = {name: CUSTOM_RESOURCE_DEFINITION.path("", name) for name in wanted}
    found = await asyncio.gather(*(look(cluster, path) for path in paths.values()))
    if Unseen.HIDDEN in found:
        return None
    pairs = zip(paths, map(shown, found), strict=True)
    return {name: item for name, item in pairs if item}


def _content_ids(definitions: Mapping[str, Object]) -> dict[str, str]:
    return {name: _content_id(item) for name, item in definitions.items()}


def _helm_release(definitions: Mapping[str, Object]) -> str:
    """Return the release that installed any of them, as arguments of `helm`; empty: none did."""
    for item in definitions.values():
        annotations = item["metadata"].get("annotations") or {}
        if release := annotations.get("meta.helm.sh/release-name"):
            return f"{release} -n {annotations.get('meta.helm.sh/release-namespace')}"
    return ""


def _content_id(definition: Object) -> str:
    annotations = definition["metadata"].get("annotations") or {}
    return str(annotations.get(names.ANNOTATION_CONTENT, ""))


async def _allowed(cluster: Cluster) -> dict[Right, bool]:
    found = await asyncio.gather(*(_may(cluster, right, cluster.namespace) for right in RIGHTS))
    return dict(zip(RIGHTS, found, strict=True))


async def _may(cluster: Cluster, right: Right, namespace: str) -> bool:
    attributes = {"namespace": namespace, "verb": right.verb, "resource": right.resource}
    attributes |= {"group": right.group, "subresource": right.subresource}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await cluster.client.create(_REVIEWS, body)
    return bool(answer["status"].get("allowed"))


async def _signals(cluster: Cluster, regions: Sequence[Object]) -> dict[str, str | None] | None:
    """Return what the metrics API says of each region's lag, None if it has a value; None instead
    of all if we may not ask."""
    names_of = [item["metadata"]["name"] for item in regions]
    found = await asyncio.gather(*(_signal(cluster, name) for name in names_of))
    if Unseen.HIDDEN in found:
        return None
    return {
        name: why for name, why in zip(names_of, found, strict=True) if not isinstance(why, Unseen)
    }


async def _signal(cluster: Cluster, region: str) -> str | Unseen | None:
    try:
        await cluster.client.get(signal_path(cluster.namespace, region, "total_lag"))
    except ApiError as error:
        return Unseen.HIDDEN if error.code == HTTPStatus.FORBIDDEN else error.message
    return None


async def _scaling(cluster: Cluster) -> Scaling:
    seen = await look(cluster, POD.path("kube-system"), **_CONTROLLERS)
    flags = seen if isinstance(seen, Unseen) else flags_of(seen["items"])
    kept = await _kept(cluster, least=0)
    zero = None if kept is Unseen.HIDDEN else kept is not Unseen.ABSENT
    if kept is Unseen.ABSENT:
        kept = await _kept(cluster, least=1)
    return Scaling(zero, None if isinstance(kept, Unseen) else has_tolerance(kept), flags)


async def _kept(cluster: Cluster, least: int) -> Object | Unseen:
    """Return what the API server would keep of an HPA; ABSENT: it refuses so few replicas."""
    path = AUTOSCALER.path(cluster.namespace)
    try:
        return await cluster.client.create(path, probe(cluster.namespace, least), dryRun="All")
    except ApiError as error:
        refused = isinstance(error, Invalid) and "minReplicas" in error.message
        return Unseen.ABSENT if refused else Unseen.HIDDEN


async def _items(cluster: Cluster, path: str) -> list[Object]:
    found = await tried(cluster, path)
    return list(found["items"]) if found else []
