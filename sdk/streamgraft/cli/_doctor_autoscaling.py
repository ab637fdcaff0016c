"""What the HPAs of regions depend on in the control plane, as far as that can be seen.

The API server shows its own feature gates by what it makes of an HPA (a dry run). Those of
kube-controller-manager are flags of its pod, which managed clusters don't show.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamgraft.cli._check import Check
from streamgraft.cli._installation import Unseen
from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PARALLEL_REGION
from streamgraft_operator.manifests.autoscaler import autoscaler, has_tolerance

_GATE_ZERO, _GATE_TOLERANCE = "HPAScaleToZero", "HPAConfigurableTolerance"
_TOLERANCE, _PERIOD = "horizontal-pod-autoscaler-tolerance", "horizontal-pod-autoscaler-sync-period"
_DEFAULTS = {_TOLERANCE: "0.1", _PERIOD: "15s"}
"""Kubernetes' own."""
_USUAL_SECONDS = 15.0
_MANAGER = "kube-controller-manager"
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@dataclass(frozen=True)
class Scaling:
    """What was seen."""

    zero: bool | None
    """Whether the API server takes an HPA with minReplicas 0; None: we may not try."""
    tolerance: bool | None
    """Whether it keeps the tolerances of an HPA."""
    flags: Mapping[str, str] | Unseen
    """Of kube-controller-manager."""


def probe(namespace: str, least: int) -> Object:
    """Return an HPA as the operator makes it for a region of at least so many channels."""
    spec = {"job": "doctor", "region": "doctor", "key": ["k"], "width": 1, "maxWidth": 2}
    asked = spec | {"autoscaling": {"minWidth": least}}
    made = autoscaler(PARALLEL_REGION.manifest("streamgraft-doctor", namespace, asked, uid=""))
    assert made is not None
    return {**made, "metadata": {"generateName": "streamgraft-doctor-"}}


def flags_of(pods: Sequence[Object]) -> Mapping[str, str] | Unseen:
    """Return the flags of a program by the pods that run it, which are replicas."""
    if not pods:
        return Unseen.ABSENT
    (container, *_) = pods[0]["spec"]["containers"]
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    found: dict[str, str] = {}
    for name, value in re.findall(r"--([a-z0-9-]+)[= ](?!--)(\S+)", " ".join(words)):
        both = name == "feature-gates" and name in found
        found[name] = f"{found[name]},{value}" if both else value
    return found


def scaling_checks(
    seen: Scaling, regions: Sequence[Object], autoscalers: Sequence[Object]
) -> Iterator[Check]:
    """Yield what regions and their HPAs have to expect."""
    sleepers = [item["metadata"]["name"] for item in regions if _may_sleep(item)]
    yield from _zero(seen, sleepers)
    yield from _steps(seen, [item for item in autoscalers if _by_demand(item)])
    yield _manager(seen.flags)


def _may_sleep(region: Object) -> bool:
    return (region["spec"].get("autoscaling") or {}).get("minWidth") == 0


def _by_demand(item: Object) -> bool:
    """Return whether it is one of the operator's whose tolerances are 0."""
    metrics = item["spec"].get("metrics") or [{}]
    metric = (metrics[0].get("object") or {}).get("metric") or {}
    labels = item["metadata"].get("labels") or {}
    return names.LABEL_REGION in labels and metric.get("name") == "demand"


def _zero(seen: Scaling, sleepers: Sequence[str]) -> Iterator[Check]:
    name = "Scale to zero"
    both = f"turn on the feature gate {_GATE_ZERO} of the API server and of {_MANAGER}"
    gate = _gate(seen.flags, _GATE_ZERO)
    asleep = f"{', '.join(sleepers)}: min_width is 0, "
    if seen.zero is None:
        if sleepers:
            text = f"{asleep}but whether the API server takes it you may not try"
            yield Check(name, "unknown", text, f"{both}, if regions keep one channel")
    elif not seen.zero and sleepers:
        text = f"{asleep}but the API server refuses it, so they keep one channel"
        yield Check(name, "bad", text, f"{both}, then restart the operator")
    elif not seen.zero:
        text = f"not to be had, since {_GATE_ZERO} is off; no region of the namespace asks for it"
        yield Check(name, "good", text)
    elif gate is False and sleepers:
        text = f"{asleep}but {_MANAGER} lacks {_GATE_ZERO}, so nothing would wake them"
        yield Check(name, "bad", text, both)
    elif gate is None and sleepers:
        text = f"{asleep}and the API server takes it; of {_MANAGER} it is not to be seen"
        yield Check(name, "unknown", text, f"{both}: without the second nothing wakes a region")
    else:
        rest = {None: "", True: f", and {_MANAGER} has it", False: f", but {_MANAGER} has not"}
        yield Check(name, "good", f"the API server takes it{rest[gate]}")


def _steps(seen: Scaling, made: Sequence[Object]) -> Iterator[Check]:
    """Tell whether HPAs take steps of less than a tenth."""
    name = "Small steps of HPAs"
    kept = seen.tolerance
    if kept is None and made:  # what the operator has written shows it as well
        kept = any(map(has_tolerance, made))
    if kept is None:
        return
    if kept and _gate(seen.flags, _GATE_TOLERANCE, default=True) is not False:
        yield Check(name, "good", "taken: the API server keeps tolerances")
        return
    share = None if isinstance(seen.flags, Unseen) else float(_flag(seen.flags, _TOLERANCE))
    if share == 0:
        yield Check(name, "good", f"taken: {_MANAGER} has no tolerance")
        return
    within = "a tenth, unless its flag says otherwise," if share is None else f"{share:.0%}"
    text = f"left out: a width within {within} of what is asked for stays"
    mend = f"use Kubernetes 1.35 or newer, or start {_MANAGER} with --{_TOLERANCE}=0"
    yield Check(name, "unknown", text, mend)


def _manager(flags: Mapping[str, str] | Unseen) -> Check:
    name = "HPA controller"
    if isinstance(flags, Unseen):
        why = {
            Unseen.HIDDEN: "you may not see pods of kube-system",
            Unseen.ABSENT: f"{_MANAGER} is no pod of kube-system, as in managed clusters",
        }[flags]
        text = f"how often it looks is not to be seen: {why}; usual are {_DEFAULTS[_PERIOD]}"
        return Check(name, "unknown", text)
    period = _flag(flags, _PERIOD)
    if _seconds(period) > _USUAL_SECONDS:
        mend = f"start {_MANAGER} with --{_PERIOD}={_DEFAULTS[_PERIOD]}"
        return Check(name, "unknown", f"looks every {period} only: widths follow late", mend)
    return Check(name, "good", f"looks every {period}")


def _flag(flags: Mapping[str, str], name: str) -> str:
    return flags.get(name, _DEFAULTS[name])


def _gate(flags: Mapping[str, str] | Unseen, gate: str, *, default: bool = False) -> bool | None:
    """Return whether a feature gate is on; None: not to be seen."""
    if isinstance(flags, Unseen):
        return None
    given = dict(pair.partition("=")[::2] for pair in flags.get("feature-gates", "").split(","))
    return given[gate].lower() == "true" if gate in given else default


def _seconds(duration: str) -> float:
    """Return a duration as Go writes it (1m30s)."""
    parts = re.findall(r"([0-9.]+)(h|ms|m|s)", duration)
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
