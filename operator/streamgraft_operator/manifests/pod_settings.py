"""What the settings of a PE put into its pod: volumes, environment, JVM options, privileges."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamgraft_common.quantities import parse
from streamgraft_common.resources import (
    CheckpointRepository,
    PodSettings,
    PullPolicy,
    VolumeClaim,
)
from streamgraft_operator.manifests.metadata import digest
from streamgraft_operator.manifests.requests import requested_memory
from streamgraft_operator.settings import Settings

DATA_PATH = "/var/lib/streamgraft/data"
CHECKPOINT_ROOT = "/var/lib/streamgraft/checkpoints"
REPOSITORY_SECRET = "/etc/streamgraft/repository"
APP_PROPERTIES = "/etc/streamgraft/properties/app"
RESTRICTED_PROPERTIES = "/etc/streamgraft/properties/restricted"
PROFILES = "profiles"
DEFAULT_RESOURCES = {"requests": {"cpu": "100m", "memory": "512Mi"}}
DEFAULT_HEAP_MB = 400
_MAY_GO = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"

_LIVE = {
    "app_trace_level",
    "runtime_trace_level",
    "restart_failed_pod",
    "restart_completed_pod",
    "restart_deleted_pod",
    "delete_failed_pod",
}
"""Settings that take effect without a new pod."""


def settings_content(settings: PodSettings) -> dict[str, Any]:
    """Return the part of the settings that a pod is made from: another one takes a new pod."""
    return settings.model_dump(exclude=_LIVE, exclude_none=True, mode="json")


def own_settings_id(settings: PodSettings) -> str:
    """Return the hash of what a PE's own settings put into its pod; empty if they put nothing."""
    content = settings_content(settings) if settings.model_fields_set else None
    return digest(content)[:16] if content else ""


@dataclass(frozen=True)
class Mount:
    """One volume, where it is mounted, and the variable that tells the runtime."""

    name: str
    path: str
    source: dict[str, Any]
    variable: str = ""
    sub_path: str | None = None
    read_only: bool = False

    def volume(self) -> dict[str, Any]:
        """Return the pod's volume."""
        return {"name": self.name, **self.source}

    def volume_mount(self) -> dict[str, Any]:
        """Return the container's mount."""
        mount: dict[str, Any] = {"name": self.name, "mountPath": self.path}
        if self.sub_path:
            mount["subPath"] = self.sub_path
        return mount | ({"readOnly": True} if self.read_only else {})


def mounts(
    settings: PodSettings, repository: CheckpointRepository | None, checkpoints: dict[str, Any]
) -> list[Mount]:
    """Return the volumes of a PE. `checkpoints` is the operator's own volume for them."""
    return [
        _checkpoints(repository, checkpoints),
        *_copies(settings, repository),
        _data(settings),
        *_properties("app-properties", APP_PROPERTIES, settings.app_properties_secret),
        *_properties(
            "restricted-properties", RESTRICTED_PROPERTIES, settings.restricted_properties_secret
        ),
    ]


def _checkpoints(repository: CheckpointRepository | None, default: dict[str, Any]) -> Mount:
    variable = "STREAMGRAFT_CHECKPOINT_ROOT"
    if repository is None or repository.file_system is None:
        return Mount("checkpoints", CHECKPOINT_ROOT, default, variable)
    files = repository.file_system
    claim = files.volume_claim
    return Mount("checkpoints", files.path, _claimed(claim), variable, claim.sub_path)


def checkpoint_volume(
    repository: CheckpointRepository | None, default: dict[str, Any]
) -> dict[str, Any]:
    """Return what decides whether checkpoints are found again, wherever pods mount it."""
    mount = _checkpoints(repository, default)
    return mount.source | ({"subPath": mount.sub_path} if mount.sub_path else {})


def _copies(settings: PodSettings, repository: CheckpointRepository | None) -> list[Mount]:
    """Return the volume of copies, or the Secret of what they are kept in."""
    if repository is None:
        return []
    if files := repository.copies:
        claim = files.volume_claim
        source = _claimed(claim)
        return [Mount("copies", files.path, source, "STREAMGRAFT_COPIES", claim.sub_path)]
    if secret := repository_secret(settings, repository):
        source = {"secret": {"secretName": secret}}
        variable = "STREAMGRAFT_REPOSITORY_SECRET"
        return [Mount("repository", REPOSITORY_SECRET, source, variable, read_only=True)]
    return []


def repository_secret(settings: PodSettings, repository: CheckpointRepository) -> str | None:
    """Return the Secret with what the repository wants to be shown, if it wants that."""
    if repository.s3:
        return repository.s3.secret
    redis = repository.redis
    asks = redis is not None and (redis.restricted_property or redis.authority)
    return settings.restricted_properties_secret if asks else None


def repository_environment(repository: CheckpointRepository | None) -> dict[str, str]:
    """Return the variable that says where copies are kept besides."""
    if repository is None or not repository.keeps_copies:
        return {}
    return {"STREAMGRAFT_REPOSITORY": repository.model_dump_json(by_alias=True, exclude_none=True)}


def repository_content(repository: CheckpointRepository | None) -> dict[str, Any] | None:
    """Return the part of it that a pod is made from: another one takes a new pod."""
    if repository is None:
        return None
    kept = repository.model_dump(include={"copies", "s3", "redis"}, exclude_none=True)
    return repository.model_dump(include={"file_system"}) | kept


def _data(settings: PodSettings) -> Mount:
    claim = settings.data_volume_claim
    source = _claimed(claim) if claim else {"emptyDir": {}}
    path = settings.data_path or DATA_PATH
    return Mount("data", path, source, "STREAMGRAFT_DATA_PATH", claim.sub_path if claim else None)


def annotations(settings: PodSettings) -> dict[str, str]:
    """Return the one that lets the cluster autoscaler remove a pod's node in spite of a volume
    whose files go with the pod; those of `data` are of no use to another."""
    return {} if settings.data_volume_claim else {_MAY_GO: "data"}


def _claimed(claim: VolumeClaim) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": claim.name}}


def _properties(name: str, path: str, secret: str | None) -> list[Mount]:
    if secret is None:
        return []
    variable = "STREAMGRAFT_" + name.upper().replace("-", "_")
    return [Mount(name, path, {"secret": {"secretName": secret}}, variable, read_only=True)]


def environment(settings: PodSettings, pod_name: str) -> dict[str, str]:
    """Return the variables that settings are passed in."""
    values = {
        "STREAMGRAFT_HEAP_MB": str(settings.heap_mb or DEFAULT_HEAP_MB),
        "STREAMGRAFT_JAVA_OPTIONS": java_options(settings, pod_name),
    }
    if _debug(settings):
        values["PYTHONFAULTHANDLER"] = "1"
    if settings.run_with_profilers:
        values["STREAMGRAFT_PROFILES"] = _profiles(settings)
    return values


def java_options(settings: PodSettings, pod_name: str) -> str:
    """Return the options of the driver's JVM; the user's come last and win."""
    options = []
    if _debug(settings):
        data = settings.data_path or DATA_PATH
        options += ["-ea", "-XX:+HeapDumpOnOutOfMemoryError", f"-XX:HeapDumpPath={data}"]
    if settings.run_with_profilers:
        recording = f"{_profiles(settings)}/{pod_name}.jfr"
        options.append(f"-XX:StartFlightRecording=filename={recording},dumponexit=true")
    return " ".join(filter(None, [*options, settings.java_options]))


def security_context(settings: PodSettings) -> dict[str, Any]:
    """Return the container's fields about privileges."""
    if not settings.allow_ptrace:
        return {}
    return {"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}}


def image(image: str | None, ours: Settings, policy: PullPolicy | None = None) -> dict[str, Any]:
    """Return a container's fields about its image: what it names, else what is ours."""
    fields: dict[str, Any] = {"image": image or ours.image}
    return fields | ({"imagePullPolicy": policy} if policy else {})


def with_pull_policy(spec: dict[str, Any], ours: Settings) -> dict[str, Any]:
    """Return a pod's spec in which containers with our image are pulled as the installation says,
    unless they say how. An image of somebody else's may be one whose tag moves."""
    policy = {"imagePullPolicy": ours.image_pull_policy} if ours.image_pull_policy else {}
    containers = [
        {**policy, **container} if container.get("image") == ours.image else container
        for container in spec["containers"]
    ]
    return {**spec, "containers": containers}


def image_pull_secrets(ours: Settings, own: str | None = None) -> dict[str, Any]:
    """Return the pod's fields about registries.

    Ours are in all pods: images of applications are made of ours, and a job keeps the one that it
    began with when ours is another.
    """
    secrets = dict.fromkeys([*([own] if own else []), *ours.image_pull_secrets])
    return {"imagePullSecrets": [{"name": name} for name in secrets]} if secrets else {}


def probes(settings: PodSettings) -> dict[str, Any]:
    """Return the container's probes."""
    delay = settings.initial_probe_delay_seconds
    return {
        "readinessProbe": _probe("/readyz", periodSeconds=1, failureThreshold=3),
        "livenessProbe": _probe(
            "/healthz",
            initialDelaySeconds=60 if delay is None else delay,
            periodSeconds=settings.probe_interval_seconds or 10,
            failureThreshold=settings.probe_failure_threshold or 6,
        ),
    }


def _probe(path: str, **timing: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "control"}, "timeoutSeconds": 5, **timing}


def _debug(settings: PodSettings) -> bool:
    return settings.build_type == "debug" or bool(settings.run_with_profilers)


def _profiles(settings: PodSettings) -> str:
    return f"{settings.data_path or DATA_PATH}/{PROFILES}"


def pool_memory(pod: Mapping[str, Any]) -> int:
    """Return the bytes that a pod counts against the memory of a warm pool.

    One that requests none counts as one that its job says nothing about: it takes memory as well.
    """
    default = int(parse(DEFAULT_RESOURCES["requests"]["memory"]))
    try:
        return requested_memory(pod["spec"]) or default
    except (AttributeError, TypeError, ValueError):
        return default  # a template that the API server refuses, with the reason
