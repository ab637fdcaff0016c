"""Which pods users may ask for: by default the restricted pod security standard (Kubernetes 1.36).

Who may create Jobs would else have every right that a pod can have: the node's files, its network,
its devices. https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from streamgraft_common import names
from streamgraft_common.resources import PodSettings
from streamgraft_operator.manifests import pod_settings
from streamgraft_operator.manifests.template import merged

_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
_SYSCTLS = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
}
_SELINUX_TYPES = {
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
}
_SECCOMP = {"RuntimeDefault", "Localhost"}
_CONTAINERS = ("initContainers", "containers")
_HOOKS = ("livenessProbe", "readinessProbe", "startupProbe")
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


IMAGE_USER = 10001
"""Who our image runs as (deploy/image/Dockerfile); volumes are its group's."""


class PodForbidden(Exception):
    """A pod template asks for more than the installation allows; the message says for what."""


@contextmanager
def well_formed() -> Iterator[None]:
    """Raise PodForbidden if a template has another shape than what is done with it asks for."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PodForbidden(
            f"podTemplate is no PodTemplateSpec ({error!r}): it has metadata and spec as a"
            " Deployment's template has them"
        ) from error


def with_defaults(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod's spec with what the standard asks for wherever the spec says nothing: null
    says nothing, too."""
    pod: dict[str, Any] = {
        "seccompProfile": {"type": "RuntimeDefault"},
        "fsGroup": IMAGE_USER,
        "fsGroupChangePolicy": "OnRootMismatch",
    }
    if not _is_root(_context(spec)):
        pod["runAsNonRoot"] = True
    secured: dict[str, Any] = merged({"securityContext": pod}, _given(spec))
    for field in _CONTAINERS:
        if field in secured:
            secured[field] = [_secured(container) for container in secured[field]]
    return secured


@well_formed()
def check(settings: PodSettings, level: str) -> None:
    """Raise PodForbidden if a pod of these settings is more than the level of the installation.

    `level`: restricted, or privileged, which allows everything.
    """
    container = {"name": names.PE_CONTAINER, **pod_settings.security_context(settings)}
    template = settings.pod_template or {}
    found = merged(template, {"metadata": {}, "spec": {"containers": [container]}})
    problems = list(_violations(found["metadata"], with_defaults(found["spec"])))
    if problems and level == "restricted":
        raise PodForbidden(
            "the pod security standard `restricted` does not allow"
            f" {', '.join(problems)}: leave it out of podTemplate (and allowPtrace), or have the"
            " installation allow it (the operator's --pod-security privileged)"
        )


def _secured(container: Mapping[str, Any]) -> dict[str, Any]:
    context = _context(container)
    ours: dict[str, Any] = {"capabilities": {"drop": ["ALL"]}}
    if not context.get("privileged"):
        ours["allowPrivilegeEscalation"] = False
    if "drop" in (context.get("capabilities") or {}):
        del ours["capabilities"]
    defaulted: dict[str, Any] = merged({"securityContext": ours}, _given(container))
    return defaulted


def _violations(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    for flag in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(flag):
            yield flag
    for volume in spec.get("volumes") or ():
        for kind in sorted(volume.keys() - _VOLUMES - {"name"}):
            yield f"volume {volume.get('name')} of type {kind}"
    for name, profile in (metadata.get("annotations") or {}).items():
        if name.startswith(_APPARMOR) and not profile.startswith(("runtime/default", "localhost/")):
            yield f"AppArmor profile {profile}"
    pod = _context(spec)
    for sysctl in pod.get("sysctls") or ():
        if sysctl["name"] not in _SYSCTLS:
            yield f"sysctl {sysctl['name']}"
    yield from _of_context("the pod", pod)
    for field in _CONTAINERS:
        for container in spec.get(field) or ():
            yield from _of_container(f"container {container['name']}", container, pod)
    if spec.get("ephemeralContainers"):
        yield "ephemeralContainers"


def _of_container(
    where: str, container: Mapping[str, Any], pod: Mapping[str, Any]
) -> Iterator[str]:
    own = _context(container)
    yield from _of_context(where, own)
    if own.get("privileged"):
        yield f"{where}: privileged"
    if own.get("allowPrivilegeEscalation") is not False:
        yield f"{where}: allowPrivilegeEscalation"
    if own.get("procMount", "Default") != "Default":
        yield f"{where}: procMount {own['procMount']}"
    capabilities = own.get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or ()):
        yield f"{where}: capabilities that are not dropped"
    for capability in capabilities.get("add") or ():
        if capability != "NET_BIND_SERVICE":
            yield f"{where}: capability {capability}"
    if own.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        yield f"{where}: runAsNonRoot that is not true"
    profile = own.get("seccompProfile") or pod.get("seccompProfile") or {}
    if profile.get("type") not in _SECCOMP:
        yield f"{where}: seccomp profile {profile.get('type')}"
    if any(port.get("hostPort") for port in container.get("ports") or ()):
        yield f"{where}: hostPort"
    hooks = [container.get(name) for name in _HOOKS]
    hooks += (container.get("lifecycle") or {}).values()
    for hook in filter(None, hooks):
        if any((hook.get(kind) or {}).get("host") for kind in ("httpGet", "tcpSocket")):
            yield f"{where}: probe or hook of another host"


def _of_context(where: str, context: Mapping[str, Any]) -> Iterator[str]:
    if _is_root(context):
        yield f"{where}: runAsUser 0"
    if context.get("runAsNonRoot") is False:
        yield f"{where}: runAsNonRoot false"
    if (context.get("seccompProfile") or {}).get("type", "RuntimeDefault") not in _SECCOMP:
        yield f"{where}: seccomp profile {context['seccompProfile']['type']}"
    if (context.get("appArmorProfile") or {}).get("type") == "Unconfined":
        yield f"{where}: AppArmor profile Unconfined"
    labels = context.get("seLinuxOptions") or {}
    if labels.get("type", "") not in _SELINUX_TYPES or labels.get("user") or labels.get("role"):
        yield f"{where}: seLinuxOptions"
    if (context.get("windowsOptions") or {}).get("hostProcess"):
        yield f"{where}: hostProcess"


def _given(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if value is not None}


def _context(item: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = item.get("securityContext") or {}
    return found


def _is_root(context: Mapping[str, Any]) -> bool:
    return context.get("runAsUser") == 0
