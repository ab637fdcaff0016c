"""The pod of one launch of a PE, as docs/contracts.md describes it."""

from typing import Any

from streamgraft_common import names
from streamgraft_common.resources import JobSpec, PodSettings, ProcessingElementSpec
from streamgraft_operator.graph import PlannedPe
from streamgraft_operator.manifests import placement, pod_settings
from streamgraft_operator.manifests.metadata import Owner, digest
from streamgraft_operator.manifests.pod_settings import DEFAULT_RESOURCES, Mount
from streamgraft_operator.manifests.template import merged
from streamgraft_operator.settings import Settings

PE_DIR = "/etc/streamgraft/pe"
BUNDLE_DIR = "/etc/streamgraft/bundle"
ANNOTATION_PE_UID = f"{names.GROUP}/pe-uid"
ANNOTATION_SETTINGS = f"{names.GROUP}/settings-id"
"""Hash of what the PE's own settings put into the pod; absent if they put nothing."""


def settings_id(spec: JobSpec, settings: Settings) -> str:
    """Return the hash of all that job and operator settings put into a pod.

    `spec` is that of an expansion.
    """
    pe = spec.processing_element
    repository = pe.checkpoint_repository
    return digest(
        [
            settings.image,
            spec.bundle.file or spec.bundle.model_dump(include={"config_map"}),
            pod_settings.settings_content(pe.for_pods()),
            repository.model_dump(include={"file_system"}) if repository else None,
            dict(settings.checkpoint_volume),
        ]
    )


def pe_content_id(pe: PlannedPe, spec: JobSpec, settings: Settings) -> str:
    """Return the content id of a PE: when it changes, the PE is launched anew."""
    return digest([pe.content_id, settings_id(spec, settings)])


def pod(
    item: dict[str, Any],
    owner: Owner,
    spec: JobSpec,
    settings: Settings,
    pool: dict[str, Any] | None,
) -> dict[str, Any]:
    """Return the pod of the current launch of the ProcessingElement `item`.

    `pool` is the HostPool that the PE is placed in.
    """
    metadata = item["metadata"]
    pe = ProcessingElementSpec.model_validate(item["spec"])
    launch = item["status"]["launchCount"]
    name = names.pod_name(owner.name, pe.pe_id, launch)
    annotations = {
        names.ANNOTATION_CONTENT: metadata["annotations"][names.ANNOTATION_CONTENT],
        ANNOTATION_PE_UID: metadata["uid"],
    }
    if own := pod_settings.own_settings_id(pe.settings):
        annotations[ANNOTATION_SETTINGS] = own
    ours = {
        "metadata": {
            "labels": {
                **metadata["labels"],
                **placement.labels(pe.placement, owner.name),
                names.LABEL_LAUNCH: str(launch),
            },
            "annotations": annotations,
        },
        "spec": _spec(metadata["name"], name, launch, owner, spec, settings, pe.effective()),
    }
    if affinity := placement.affinity(
        pe.placement, pool, owner.namespace, owner.name, metadata["name"]
    ):
        ours["spec"]["affinity"] = affinity
    template = merged(pe.effective().pod_template or {}, ours)
    identity = {
        "name": name,
        "namespace": owner.namespace,
        "ownerReferences": [owner.reference()],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], **identity},
        "spec": template["spec"],
    }


def _spec(
    pe: str,
    pod_name: str,
    launch: int,
    owner: Owner,
    spec: JobSpec,
    settings: Settings,
    effective: PodSettings,
) -> dict[str, Any]:
    mounts = _mounts(pe, owner, spec, settings, effective)
    values = {
        **(effective.env or {}),
        "STREAMGRAFT_NAMESPACE": owner.namespace,
        "STREAMGRAFT_JOB": owner.name,
        "STREAMGRAFT_PE": pe,
        "STREAMGRAFT_POD": pod_name,
        "STREAMGRAFT_LAUNCH": str(launch),
        "STREAMGRAFT_BUNDLE": _bundle_path(owner, spec),
        **{mount.variable: mount.path for mount in mounts if mount.variable},
        **pod_settings.environment(effective, pod_name),
    }
    container = {
        "name": "pe",
        **pod_settings.image(effective, settings.image),
        "command": ["python", "-m", "streamgraft_pe_runtime"],
        "env": _environment(values),
        "ports": [{"name": "control", "containerPort": names.control_port()}],
        "resources": effective.resources.to_wire() if effective.resources else DEFAULT_RESOURCES,
        "volumeMounts": [mount.volume_mount() for mount in mounts],
        **pod_settings.probes(effective),
        **pod_settings.security_context(effective),
    }
    return {
        "restartPolicy": "Never",
        "serviceAccountName": names.SERVICE_ACCOUNT_PE,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        **pod_settings.image_pull_secrets(effective),
        "containers": [container],
        "volumes": [mount.volume() for mount in mounts],
    }


def _environment(values: dict[str, str]) -> list[dict[str, Any]]:
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    return [
        *({"name": name, "value": value} for name, value in values.items()),
        {"name": "STREAMGRAFT_BIND_ADDRESS", "valueFrom": address},
    ]


def _mounts(
    pe: str, owner: Owner, spec: JobSpec, settings: Settings, effective: PodSettings
) -> list[Mount]:
    metadata = Mount(
        "pe", PE_DIR, {"configMap": {"name": pe}}, "STREAMGRAFT_PE_DIR", read_only=True
    )
    repository = spec.processing_element.checkpoint_repository
    mounts = [
        metadata,
        *pod_settings.mounts(effective, repository, dict(settings.checkpoint_volume)),
    ]
    if bundle := spec.bundle.mounted(owner.name):
        mounts.append(
            Mount("bundle", BUNDLE_DIR, {"configMap": {"name": bundle.name}}, read_only=True)
        )
    return mounts


def _bundle_path(owner: Owner, spec: JobSpec) -> str:
    bundle = spec.bundle.mounted(owner.name)
    return f"{BUNDLE_DIR}/{bundle.key}" if bundle else spec.bundle.file or ""
