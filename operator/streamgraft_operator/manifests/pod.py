"""The pod of one launch of a PE, as docs/contracts.md describes it."""

from typing import Any

from streamgraft_common import names
from streamgraft_common.resources import JobSpec
from streamgraft_operator.graph import PlannedPe
from streamgraft_operator.manifests.metadata import Owner, digest
from streamgraft_operator.settings import Settings

PE_DIR = "/etc/streamgraft/pe"
BUNDLE_DIR = "/etc/streamgraft/bundle"
CHECKPOINT_ROOT = "/var/lib/streamgraft/checkpoints"
ANNOTATION_PE_UID = f"{names.GROUP}/pe-uid"
DEFAULT_RESOURCES = {"requests": {"cpu": "100m", "memory": "512Mi"}}


def settings_id(spec: JobSpec, settings: Settings) -> str:
    """Return the hash of all that job and operator settings put into a pod."""
    pe = spec.processing_element
    return digest(
        [
            spec.image or settings.image,
            spec.bundle.to_wire(),
            {"heap": pe.heap_mb, "java": pe.java_options, "env": pe.env},
            pe.resources.to_wire() if pe.resources else None,
            dict(settings.checkpoint_volume),
        ]
    )


def pe_content_id(pe: PlannedPe, spec: JobSpec, settings: Settings) -> str:
    """Return the content id of a PE: when it changes, the PE is launched anew."""
    return digest([pe.content_id, settings_id(spec, settings)])


def pod(item: dict[str, Any], owner: Owner, spec: JobSpec, settings: Settings) -> dict[str, Any]:
    """Return the pod of the current launch of the ProcessingElement `item`."""
    metadata = item["metadata"]
    launch = item["status"]["launchCount"]
    name = names.pod_name(owner.name, item["spec"]["peId"], launch)
    labels = {**metadata["labels"], names.LABEL_LAUNCH: str(launch)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": labels,
            "annotations": {
                names.ANNOTATION_CONTENT: metadata["annotations"][names.ANNOTATION_CONTENT],
                ANNOTATION_PE_UID: metadata["uid"],
            },
            "ownerReferences": [owner.reference()],
        },
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": names.SERVICE_ACCOUNT_PE,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 30,
            "containers": [_container(metadata["name"], name, launch, owner, spec, settings)],
            "volumes": _volumes(metadata["name"], spec, settings),
        },
    }


def _container(
    pe: str, pod_name: str, launch: int, owner: Owner, spec: JobSpec, settings: Settings
) -> dict[str, Any]:
    resources = spec.processing_element.resources
    mounts = [
        {"name": "pe", "mountPath": PE_DIR, "readOnly": True},
        {"name": "checkpoints", "mountPath": CHECKPOINT_ROOT},
    ]
    if spec.bundle.config_map:
        mounts.append({"name": "bundle", "mountPath": BUNDLE_DIR, "readOnly": True})
    return {
        "name": "pe",
        "image": spec.image or settings.image,
        "command": ["python", "-m", "streamgraft_pe_runtime"],
        "env": _environment(pe, pod_name, launch, owner, spec),
        "ports": [{"name": "control", "containerPort": names.control_port()}],
        "resources": resources.to_wire() if resources else DEFAULT_RESOURCES,
        "volumeMounts": mounts,
        "readinessProbe": _probe("/readyz", periodSeconds=1, failureThreshold=3),
        "livenessProbe": _probe(
            "/healthz", initialDelaySeconds=60, periodSeconds=10, failureThreshold=6
        ),
    }


def _probe(path: str, **timing: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "control"}, "timeoutSeconds": 5, **timing}


def _environment(
    pe: str, pod_name: str, launch: int, owner: Owner, spec: JobSpec
) -> list[dict[str, Any]]:
    settings = spec.processing_element
    values = {
        **(settings.env or {}),
        "STREAMGRAFT_NAMESPACE": owner.namespace,
        "STREAMGRAFT_JOB": owner.name,
        "STREAMGRAFT_PE": pe,
        "STREAMGRAFT_POD": pod_name,
        "STREAMGRAFT_LAUNCH": str(launch),
        "STREAMGRAFT_PE_DIR": PE_DIR,
        "STREAMGRAFT_BUNDLE": _bundle_path(spec),
        "STREAMGRAFT_CHECKPOINT_ROOT": CHECKPOINT_ROOT,
        "STREAMGRAFT_HEAP_MB": str(settings.heap_mb or 400),
        "STREAMGRAFT_JAVA_OPTIONS": settings.java_options or "",
    }
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    return [
        *({"name": name, "value": value} for name, value in values.items()),
        {"name": "STREAMGRAFT_BIND_ADDRESS", "valueFrom": address},
    ]


def _bundle_path(spec: JobSpec) -> str:
    if spec.bundle.config_map:
        return f"{BUNDLE_DIR}/{spec.bundle.config_map.key}"
    return spec.bundle.file or ""


def _volumes(pe: str, spec: JobSpec, settings: Settings) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "pe", "configMap": {"name": pe}},
        {"name": "checkpoints", **settings.checkpoint_volume},
    ]
    if spec.bundle.config_map:
        volumes.append({"name": "bundle", "configMap": {"name": spec.bundle.config_map.name}})
    return volumes
