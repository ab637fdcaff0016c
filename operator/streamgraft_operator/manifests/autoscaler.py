"""The HorizontalPodAutoscaler of a region, from its `autoscaling`."""

from typing import Any

from streamgraft_common import names
from streamgraft_common.autoscaler_spec import autoscaler_spec
from streamgraft_common.kinds import AUTOSCALER
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_operator.kit.parsed import region_spec

_TOLERANCE = "tolerance"


def autoscaler(region: Object) -> Object | None:
    """Return the autoscaler that a ParallelRegion asks for, None if it asks for none.

    Everything that the API server would fill in is there, so that any difference is a drift.
    """
    spec = region_spec(region)
    settings, metadata = spec.autoscaling, region["metadata"]
    if settings is None:
        return None
    target = {
        "apiVersion": names.API_VERSION,
        "kind": PARALLEL_REGION.kind,
        "name": metadata["name"],
    }
    owner = {**target, "uid": metadata["uid"], "controller": True, "blockOwnerDeletion": False}
    labels = {names.LABEL_JOB: spec.job, names.LABEL_REGION: spec.region}
    return {
        "apiVersion": AUTOSCALER.api_version,
        "kind": AUTOSCALER.kind,
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": autoscaler_spec(settings, spec.max_width, target),
    }


def has_tolerance(item: Object) -> bool:
    """Return whether an autoscaler has tolerances of its own."""
    return any(_TOLERANCE in rules for rules in _rules(item).values())


def without_tolerance(item: Object) -> Object:
    """Return an autoscaler as API servers keep it that don't know of tolerances."""
    behavior = {
        direction: {name: value for name, value in rules.items() if name != _TOLERANCE}
        for direction, rules in _rules(item).items()
    }
    return {**item, "spec": {**item["spec"], "behavior": behavior}}


def _rules(item: Object) -> dict[str, Any]:
    """Return the rules of an autoscaler, which a user may have removed, by direction."""
    behavior = item["spec"].get("behavior") or {}
    return {direction: rules or {} for direction, rules in behavior.items()}
