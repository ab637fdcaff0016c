"""What `streamgraft doctor` makes of what it has seen."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from streamgraft.cli._check import Check
from streamgraft.cli._doctor_autoscaling import Scaling, scaling_checks
from streamgraft.cli._installation import Unseen, settings_of
from streamgraft_common import names
from streamgraft_common.conditions import find
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import KINDS, JobStatus
from streamgraft_common.timestamps import from_rfc3339

OLDEST_MINOR = 31
"""Of Kubernetes 1: older ones have no field selectors of custom resources, by which pods find their
PEs (docs/operate/install.md)."""
_LEASE_SECONDS = 60.0
_SETTLING_SECONDS = 120.0
"""A region younger than this may have no samples: they are rates over a minute."""
_INSTALL = "install it: docs/operate/install.md; or start the embedded one: streamgraft up"


@dataclass(frozen=True)
class Right:
    """Something that the caller needs to be allowed to do in the namespace."""

    verb: str
    resource: str
    group: str = names.GROUP
    subresource: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (self.subresource and f"/{self.subresource}")


RIGHTS = (
    # What is applied (patch) and is not there yet is created.
    *(Right(verb, "jobs") for verb in ("get", "list", "create", "patch", "delete")),
    Right("list", "processingelements"),
    *(Right(verb, "parallelregions") for verb in ("get", "list")),
    Right("patch", "parallelregions", subresource="scale"),
    *(Right(verb, "savepoints") for verb in ("get", "list", "create", "delete")),
    *(Right(verb, "testsuites") for verb in ("get", "create", "patch", "delete")),
    *(Right(verb, "configmaps", "") for verb in ("get", "list", "create", "patch", "delete")),
    *(Right(verb, "pods", "") for verb in ("get", "list")),
    Right("get", "pods", "", subresource="log"),
    Right("list", "horizontalpodautoscalers", "autoscaling"),
    *(
        Right("get", f"parallelregions.{names.GROUP}", "custom.metrics.k8s.io", metric)
        for metric in ("total_lag", "utilization", "demand", names.EXPLANATION)
    ),
)
"""What the commands of the command line ask for."""

FORWARDING = Right("create", "pods", "", "portforward")
"""What the console needs besides, in the adapter's namespace."""


@dataclass(frozen=True)
class Facts:
    """What was seen; None: it is not there, or may not be read."""

    version: str
    namespace: str
    kinds: frozenset[str] | None
    definitions: Mapping[str, str] | None
    """Content ids of the definitions that are installed, by name; empty where one has none."""
    helm: str
    """Name and namespace of the Helm release that installed definitions, as arguments of `helm`;
    empty: none did."""
    released: Mapping[str, str]
    """Those of this release."""
    system: str
    """Namespace of the operator."""
    deployment: Object | None
    """The operator's."""
    lease: Object | None
    claims: Mapping[str, Object] | None
    """Of the namespace, by name."""
    api_services: Mapping[str, Object | Unseen]
    allowed: Mapping[Right, bool]
    forwards: bool
    """Whether we may forward a port to the adapter."""
    jobs: Sequence[Object]
    regions: Sequence[Object]
    autoscalers: Sequence[Object]
    signals: Mapping[str, str | None] | None
    """Why a region has no lag, by the region's name; None where it has."""
    scaling: Scaling


def checks(facts: Facts) -> list[Check]:
    """Return all checks, in the order in which things depend on each other."""
    found = [_kubernetes(facts.version), _resources(facts)]
    if facts.kinds is None:
        return found
    found.append(_operator(facts))
    found += _version(facts.deployment)
    used = any(_is_external(item) for item in facts.autoscalers)
    for group, item in facts.api_services.items():
        needed = used or not group.startswith("external.")
        found.append(_api_service(group, item, needed=needed))
    found.append(_rights(facts.allowed, facts.namespace))
    found.append(_console(facts.forwards, facts.system))
    found += _checkpoints(facts)
    found += _kafka(facts.jobs)
    young = _without_samples(facts.regions, facts.jobs)
    found += _prometheus(facts.signals, young)
    found += _autoscalers(facts.autoscalers, young)
    found += scaling_checks(facts.scaling, facts.regions, facts.autoscalers)
    return found


def _kubernetes(version: str) -> Check:
    found = re.match(r"v1\.(\d+)", version)
    if found and int(found[1]) >= OLDEST_MINOR:
        return Check("Kubernetes", "good", version)
    mend = f"use Kubernetes 1.{OLDEST_MINOR} or newer"
    return Check("Kubernetes", "bad", f"{version} is too old", mend)


def _resources(facts: Facts) -> Check:
    name = "Resource definitions"
    if facts.kinds is None:
        return Check(name, "bad", f"the API server does not know {names.API_VERSION}", _INSTALL)
    apply, command = "apply deploy/crds of this release before its operator", ""
    if facts.helm:  # it owns their fields, which nobody else can apply without a conflict
        apply = f"helm upgrade {facts.helm}, with the chart of this release"
    else:
        command = ": `kubectl apply --server-side -f deploy/crds`"
    if missing := _missing(facts.kinds):
        text = f"{', '.join(missing)} missing: they are of an older release"
        return Check(name, "bad", text, apply)
    all_kinds = f"{names.API_VERSION} with all {len(KINDS)} kinds"
    if facts.definitions is None:
        text = f"{all_kinds}; you may not see whether they are of this release"
        return Check(name, "unknown", text)
    differing = facts.released.items() - facts.definitions.items()
    if not differing:
        return Check(name, "good", f"{all_kinds}, of this release")
    other = ", ".join(sorted(definition for definition, _ in differing))
    text = f"{other}: of another release than this command line"
    theirs = _release_of(facts.deployment)
    if theirs not in (None, version("streamgraft")):
        return Check(name, "unknown", text, f"let the command line of {theirs} look")
    return Check(name, "bad", text, apply + command)


def _missing(kinds: frozenset[str]) -> list[str]:
    return sorted({kind.plural for kind in KINDS} - kinds)


def _release_of(deployment: Object | None) -> str | None:
    labels = (deployment or {}).get("metadata", {}).get("labels") or {}
    return labels.get("app.kubernetes.io/version")


def _tag_of(deployment: Object | None) -> str | None:
    """Return the tag of the operator's image; None if it has none, or it is not known."""
    if deployment is None:
        return None
    (container, *_) = deployment["spec"]["template"]["spec"]["containers"]
    name = container.get("image", "").partition("@")[0].rpartition("/")[2]
    return name.partition(":")[2] or None


def _version(deployment: Object | None) -> Iterator[Check]:
    theirs, ours = _release_of(deployment), version("streamgraft")
    if theirs is None:
        return
    if (tag := _tag_of(deployment)) not in (None, theirs):
        mend = (
            "if the tag is of an earlier release: helm upgrade with --set image.tag= (the chart's)"
        )
        text = f"the operator's image is {tag}, its chart {theirs}, this {ours}"
        yield Check("Version", "unknown", text, mend)
    elif theirs == ours:
        yield Check("Version", "good", f"{ours} here and there")
    else:
        mend = f"use the command line of {theirs}, or upgrade the release"
        yield Check("Version", "unknown", f"this is {ours}, the operator {theirs}", mend)


def _checkpoints(facts: Facts) -> Iterator[Check]:
    """Look for the claim of the volume that PEs share, if it is known."""
    try:
        volume = json.loads(settings_of(facts.deployment).get("checkpoint-volume", "{}"))
    except ValueError:
        return
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    if claim is None or facts.claims is None:
        return
    name, found = "Checkpoint volume", facts.claims.get(claim)
    if found is None:
        mend = f"make a claim {claim} (ReadWriteMany) there: docs/operate/install.md"
        yield Check(name, "bad", f"there is no claim {claim} in {facts.namespace}", mend)
    elif (phase := (found.get("status") or {}).get("phase")) != "Bound":
        mend = f"kubectl describe pvc {claim} -n {facts.namespace}"
        # Some volumes are made for the first pod that wants them.
        yield Check(name, "unknown", f"the claim {claim} is {phase}", mend)
    else:
        yield Check(name, "good", f"the claim {claim} is bound")


def _is_external(autoscaler: Object) -> bool:
    metrics = autoscaler["spec"].get("metrics") or []
    return any(metric["type"] == "External" for metric in metrics)


def _operator(facts: Facts) -> Check:
    lease, system = facts.lease, facts.system
    if lease is None:
        text = "its lease is not to be seen: no operator leads, or you may not read it"
        return Check("Operator", "unknown", text, f"kubectl get lease -n {system}")
    spec = lease.get("spec", {})
    age = datetime.now(UTC).timestamp() - from_rfc3339(spec.get("renewTime") or _NEVER)
    holder = spec.get("holderIdentity")
    if not holder or age > _LEASE_SECONDS:
        mend = f"kubectl logs -n {system} deployment/streamgraft-operator"
        return Check("Operator", "bad", f"nobody has led for {age:.0f} s", mend)
    if _missing(facts.kinds or frozenset()):
        text = (
            f"{holder} leads; if it is of this release it does nothing before all kinds are there"
        )
        return Check("Operator", "unknown", text)
    return Check("Operator", "good", f"{holder} leads")


_NEVER = "1970-01-01T00:00:00Z"


def _api_service(group: str, item: Object | Unseen, *, needed: bool) -> Check:
    if item is Unseen.HIDDEN:
        text = "you may not see who serves it"
        return Check(group, "unknown", text, f"kubectl get apiservices | grep {group}, as an admin")
    if isinstance(item, Unseen) and not needed:
        text = "nobody serves it: HPAs with metrics of type External would see no signal"
        return Check(group, "unknown", text)
    if isinstance(item, Unseen):
        mend = "apply the APIServices of the metrics adapter: docs/operate/install.md"
        return Check(group, "bad", "nobody serves it, so no HPA sees a signal", mend)
    condition = _condition(item, "Available")
    service = item["spec"].get("service") or {}
    place = f"{service.get('namespace', '')}/{service.get('name', '')}".strip("/")
    if condition.get("status") == "True":
        return Check(group, "good", f"served by {place or 'the API server'}")
    text = f"{place}: {condition.get('message') or 'not available'}"
    mend = "look at the adapter's pod, its Service and the caBundle of the APIService"
    return Check(group, "bad", text, mend)


def _rights(allowed: Mapping[Right, bool], namespace: str) -> Check:
    if denied := [str(right) for right, may in allowed.items() if not may]:
        text = f"in namespace {namespace} you may not {', '.join(denied)}"
        mend = "ask for a RoleBinding there to the ClusterRole edit, or to streamgraft-edit"
        return Check("Your rights", "bad", text, mend)
    return Check("Your rights", "good", f"all that the commands need in namespace {namespace}")


def _console(forwards: bool, system: str) -> Check:
    if forwards:
        return Check("Console", "good", f"you may forward a port to the adapter in {system}")
    text = f"you may not forward a port to the adapter in {system}"
    mend = "ask for a RoleBinding there to the Role streamgraft-console, or for another way to it"
    return Check("Console", "unknown", text, mend)


def _kafka(jobs: Sequence[Object]) -> Iterator[Check]:
    for item in jobs:
        status = JobStatus.model_validate(item.get("status") or {})
        for kind in ("KafkaAvailable", "SourcesAvailable"):
            found = find(status.conditions, kind)
            if found and found.status == "False":
                name = f"Kafka of job {item['metadata']['name']}"
                mend = (
                    "brokers: bootstrapServers of the Job, or --bootstrap-servers of the operator"
                )
                if kind == "SourcesAvailable":
                    mend = "create the topic, or submit with --create-topics"
                yield Check(name, "bad", found.message, mend)
    if jobs and all(_kafka_is_there(item) for item in jobs):
        yield Check("Kafka", "good", f"answers for all {len(jobs)} jobs of the namespace")


def _kafka_is_there(job: Object) -> bool:
    return _condition(job, "KafkaAvailable").get("status") == "True"


def _without_samples(regions: Sequence[Object], jobs: Sequence[Object]) -> Mapping[str, str]:
    """Return why regions can't have samples yet, by their names."""
    found: dict[str, str] = {}
    phases = {item["metadata"]["name"]: (item.get("status") or {}).get("phase") for item in jobs}
    now = datetime.now(UTC).timestamp()
    for region in regions:
        metadata, job = region["metadata"], region["spec"]["job"]
        age = now - from_rfc3339(metadata["creationTimestamp"])
        if (phase := phases.get(job)) != "Healthy":
            found[metadata["name"]] = f"its job {job} is {phase or 'not there'}"
        elif age < _SETTLING_SECONDS:
            found[metadata["name"]] = f"it is {age:.0f} s old"
    return found


def _prometheus(
    signals: Mapping[str, str | None] | None, young: Mapping[str, str]
) -> Iterator[Check]:
    if signals is None:
        mend = "ask for a RoleBinding there to the ClusterRole streamgraft-view"
        yield Check("Prometheus", "unknown", "you may not see whether it has lags of regions", mend)
        return
    silent = {name: why for name, why in signals.items() if why is not None}
    if silent and silent.keys() <= young.keys():
        name = next(iter(silent))
        yield Check("Prometheus", "unknown", f"region {name} has no lag yet: {young[name]}")
    elif silent:
        name, why = next(item for item in silent.items() if item[0] not in young)
        mend = "Prometheus has to scrape the PEs' port `control`: docs/operate/metrics.md"
        yield Check("Prometheus", "bad", f"region {name} has no lag: {why}", mend)
    elif signals:
        yield Check("Prometheus", "good", f"has the lag of {len(signals)} regions")


def _autoscalers(items: Sequence[Object], young: Mapping[str, str]) -> Iterator[Check]:
    for item in items:
        target = item["spec"]["scaleTargetRef"]
        if target["kind"] != "ParallelRegion":
            continue
        name = f"HPA {item['metadata']['name']}"
        bad = [kind for kind in ("AbleToScale", "ScalingActive") if _denied(item, kind)]
        if bad and target["name"] in young:
            yield Check(name, "unknown", f"has no samples yet: {young[target['name']]}")
        elif bad:
            text = _condition(item, bad[0]).get("message", "")
            yield Check(name, "bad", text, f"kubectl describe hpa {item['metadata']['name']}")
        else:
            status = item.get("status") or {}
            yield Check(name, "good", f"wants {status.get('desiredReplicas', '?')} channels")


def _denied(item: Object, kind: str) -> bool:
    found = _condition(item, kind)
    return found.get("status") == "False" and found.get("reason") != "ScalingDisabled"


def _condition(item: Object, kind: str) -> dict[str, Any]:
    conditions = (item.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), {})
