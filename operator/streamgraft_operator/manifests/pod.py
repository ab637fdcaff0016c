"""Pods: of one launch of a PE, or waiting for one, as docs/develop/contracts.md describes them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamgraft_common import names
from streamgraft_common.adl import Placement
from streamgraft_common.content import Content
from streamgraft_common.resources import JobSpec, PodSettings
from streamgraft_operator.graph import PlannedPe, with_settings
from streamgraft_operator.kit.parsed import pe_spec, pe_status
from streamgraft_operator.manifests import placement, pod_security, pod_settings, transport
from streamgraft_operator.manifests.metadata import Owner, digest
from streamgraft_operator.manifests.pod_settings import DEFAULT_RESOURCES, Mount
from streamgraft_operator.manifests.template import merged
from streamgraft_operator.settings import Settings

BUNDLE_DIR = "/etc/streamgraft/bundle"
_ANYWHERE = Placement()
ANNOTATION_PE_UID = f"{names.GROUP}/pe-uid"
ANNOTATION_SETTINGS = f"{names.GROUP}/settings-id"
"""Hash of what the PE's own settings put into the pod; absent if they put nothing."""


def settings_id(spec: JobSpec, settings: Settings) -> str:
    """Return the hash of all that job and operator settings put into a pod.

    `spec` is that of an expansion.
    """
    pe = spec.processing_element
    return digest(
        [
            spec.bundle.file or spec.bundle.model_dump(include={"config_map"}),
            pod_settings.settings_content(pe.for_pods()),
            pod_settings.repository_content(pe.checkpoint_repository),
            dict(settings.checkpoint_volume),
            spec.transport_security.model_dump(include={"type", "kafka_secret"}),
        ]
    )


def checkpoint_volume(spec: JobSpec, settings: Settings) -> dict[str, Any]:
    """Return where the checkpoints of a job are: a volume, and a folder of it."""
    repository = spec.processing_element.checkpoint_repository
    return pod_settings.checkpoint_volume(repository, dict(settings.checkpoint_volume))


def check_pods(owner: Owner, spec: JobSpec, settings: Settings) -> None:
    """Raise PodForbidden if the pods of a job would be more than the installation allows, or can't
    be made from its template."""
    driver = _Driver(spec.processing_element.for_pods(), 1, {}, {})
    _pod("", _waiting(owner, ""), driver, owner, spec, settings)


def pod(
    item: dict[str, Any],
    owner: Owner,
    spec: JobSpec,
    settings: Settings,
    pool: dict[str, Any] | None,
) -> dict[str, Any]:
    """Return the pod of the current launch of the ProcessingElement `item`.

    `pool` is the HostPool that the PE is placed in. Raises PodForbidden.
    """
    pe = pe_spec(item)
    name = names.pod_name(owner.name, pe.pe_id, pe_status(item).launch_count)
    affinity = placement.affinity(
        pe.placement, pool, owner.namespace, owner.name, item["metadata"]["name"]
    )
    driver = _Driver(pe.effective(), pe.slots, pe.spark_conf, affinity)
    return _pod(name, adoption(item), driver, owner, spec, settings)


def warm_pod(
    name: str, pe: PlannedPe, owner: Owner, spec: JobSpec, settings: Settings
) -> dict[str, Any]:
    """Return a pod that waits for a PE with the same driver as `pe`. Raises PodForbidden."""
    content = with_settings(pe.content, settings_id(spec, settings))
    metadata = _waiting(owner, content.pool(pe.metadata.bundle_digest))
    inherited = spec.processing_element.for_pods()
    driver = _Driver(inherited, pe.metadata.slots, pe.metadata.spark_conf, {})
    return _pod(name, metadata, driver, owner, spec, settings)


def adoption(item: dict[str, Any]) -> dict[str, Any]:
    """Return the labels and annotations of the pod of a PE's current launch.

    Patched onto a warm pod they take it out of the pool.
    """
    metadata = item["metadata"]
    pe = pe_spec(item)
    annotations = {
        names.ANNOTATION_CONTENT: metadata["annotations"][names.ANNOTATION_CONTENT],
        ANNOTATION_PE_UID: metadata["uid"],
    }
    if own := pod_settings.own_settings_id(pe.settings):
        annotations[ANNOTATION_SETTINGS] = own
    labels = {
        **metadata["labels"],
        **placement.labels(pe.placement, pe.job),
        names.LABEL_LAUNCH: str(pe_status(item).launch_count),
    }
    return {"labels": labels, "annotations": annotations}


def return_to_pool(item: dict[str, Any], owner: Owner) -> dict[str, Any]:
    """Return the patch of a pod's metadata that undoes its adoption by a PE."""
    content = Content.parse(item["metadata"]["annotations"][names.ANNOTATION_CONTENT])
    waiting = _waiting(owner, content.pool(pe_spec(item).bundle_digest))
    return {
        kind: {**dict.fromkeys(adopted), **waiting[kind]}
        for kind, adopted in adoption(item).items()
    }


def _waiting(owner: Owner, pool: str) -> dict[str, Any]:
    """Return the labels and annotations of a pod in the warm pool."""
    return {
        "labels": {**owner.labels(), names.LABEL_POOL: names.POOL_WARM},
        "annotations": {names.ANNOTATION_CONTENT: pool},
    }


def is_generic(item: dict[str, Any]) -> bool:
    """Return whether a PE's pod is made of nothing but its job: then a warm pod will do."""
    pe = pe_spec(item)
    return pe.placement == _ANYWHERE and not pod_settings.own_settings_id(pe.settings)


@dataclass(frozen=True)
class _Driver:
    """What a pod is made from, beside its name and its job."""

    settings: PodSettings
    slots: int
    spark_conf: Mapping[str, str]
    affinity: dict[str, Any]


@pod_security.well_formed()
def _pod(
    name: str,
    metadata: dict[str, Any],
    driver: _Driver,
    owner: Owner,
    spec: JobSpec,
    settings: Settings,
) -> dict[str, Any]:
    annotations = {
        **metadata["annotations"],
        **transport.annotations(spec.transport_security),
        **pod_settings.annotations(driver.settings),
    }
    ours = {
        "metadata": {**metadata, "annotations": annotations},
        "spec": _spec(name, driver, owner, spec, settings),
    }
    if driver.affinity:
        ours["spec"]["affinity"] = driver.affinity
    pod_security.check(driver.settings, settings.pod_security)
    template = merged(driver.settings.pod_template or {}, ours)
    filled = pod_settings.with_pull_policy(template["spec"], settings)
    identity = {
        "name": name,
        "namespace": owner.namespace,
        "ownerReferences": [owner.reference()],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], **identity},
        "spec": placement.spread(
            placement.tolerating(pod_security.with_defaults(filled)),
            metadata["labels"],
        ),
    }


def _spec(
    name: str, driver: _Driver, owner: Owner, spec: JobSpec, settings: Settings
) -> dict[str, Any]:
    effective = driver.settings
    mounts = _mounts(owner, spec, settings, effective)
    values = {
        **(effective.env or {}),
        "STREAMGRAFT_NAMESPACE": owner.namespace,
        "STREAMGRAFT_JOB": owner.name,
        "STREAMGRAFT_POD": name,
        "STREAMGRAFT_BUNDLE": _bundle_path(owner, spec),
        "STREAMGRAFT_SLOTS": str(driver.slots),
        "STREAMGRAFT_SPARK_CONF": json.dumps(driver.spark_conf),
        **{mount.variable: mount.path for mount in mounts if mount.variable},
        **pod_settings.environment(effective, name),
        **pod_settings.repository_environment(spec.processing_element.checkpoint_repository),
    }
    container = {
        "name": names.PE_CONTAINER,
        **pod_settings.image(effective.image, settings, effective.image_pull_policy),
        "command": ["python", "-m", "streamgraft_pe_runtime"],
        "env": _environment(values),
        "ports": [{"name": "control", "containerPort": names.CONTROL_PORT}],
        "resources": effective.resources.to_wire() if effective.resources else DEFAULT_RESOURCES,
        "volumeMounts": [mount.volume_mount() for mount in mounts],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **transport.probes(pod_settings.probes(effective), spec.transport_security),
        **pod_settings.security_context(effective),
    }
    return {
        "restartPolicy": "Never",
        "serviceAccountName": names.SERVICE_ACCOUNT_PE,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        **pod_settings.image_pull_secrets(settings, effective.image_pull_secret),
        "containers": [container],
        "volumes": [mount.volume() for mount in mounts],
    }


def _environment(values: dict[str, str]) -> list[dict[str, Any]]:
    fields = {"STREAMGRAFT_POD_UID": "metadata.uid", "STREAMGRAFT_BIND_ADDRESS": "status.podIP"}
    return [
        *({"name": name, "value": value} for name, value in values.items()),
        *(
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for name, path in fields.items()
        ),
    ]


def _mounts(owner: Owner, spec: JobSpec, settings: Settings, effective: PodSettings) -> list[Mount]:
    repository = spec.processing_element.checkpoint_repository
    mounts = [
        *pod_settings.mounts(effective, repository, dict(settings.checkpoint_volume)),
        *transport.mounts(owner.name, spec.transport_security),
    ]
    if bundle := spec.bundle.mounted(owner.name):
        mounts.append(
            Mount("bundle", BUNDLE_DIR, {"configMap": {"name": bundle.name}}, read_only=True)
        )
    return mounts


def _bundle_path(owner: Owner, spec: JobSpec) -> str:
    bundle = spec.bundle.mounted(owner.name)
    return f"{BUNDLE_DIR}/{bundle.key}" if bundle else spec.bundle.file or ""
