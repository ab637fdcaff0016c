"""Pod templates, and whether the restricted pod security standard allows them."""

from typing import Any

PE: dict[str, Any] = {"name": "pe"}


def _container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{**PE, **fields}]}}


def _context(**fields: Any) -> dict[str, Any]:
    return _container(securityContext=fields)


ALLOWED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "selector": {"spec": {"nodeSelector": {"disk": "ssd"}}},
    "user": {"spec": {"securityContext": {"runAsUser": 1234, "fsGroup": 1}}},
    "bind": _context(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
    "sidecar": {"spec": {"containers": [{"name": "sidecar", "image": "proxy"}]}},
    "first": {"spec": {"initContainers": [{"name": "first", "image": "proxy"}]}},
    "empty-dir": {"spec": {"volumes": [{"name": "scratch", "emptyDir": {}}]}},
    "sysctl": {
        "spec": {
            "securityContext": {"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]}
        }
    },
    "localhost": _context(seccompProfile={"type": "Localhost", "localhostProfile": "p.json"}),
    "probe": _container(startupProbe={"httpGet": {"path": "/", "port": 80}}),
}

FORBIDDEN: dict[str, dict[str, Any]] = {
    "host-network": {"spec": {"hostNetwork": True}},
    "host-pid": {"spec": {"hostPID": True}},
    "host-ipc": {"spec": {"hostIPC": True}},
    "host-path": {"spec": {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}},
    "nfs": {"spec": {"volumes": [{"name": "n", "nfs": {"server": "a", "path": "/"}}]}},
    "privileged": _context(privileged=True),
    "escalation": _context(allowPrivilegeEscalation=True),
    "capability": _context(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}),
    "some-dropped": _context(capabilities={"drop": ["NET_RAW"]}),
    "root": {"spec": {"securityContext": {"runAsUser": 0}}},
    "container-root": _context(runAsUser=0),
    "perhaps-root": {"spec": {"securityContext": {"runAsNonRoot": False}}},
    "unconfined": {"spec": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}},
    "container-unconfined": _context(seccompProfile={"type": "Unconfined"}),
    "apparmor": _context(appArmorProfile={"type": "Unconfined"}),
    "selinux": _context(seLinuxOptions={"type": "spc_t"}),
    "selinux-user": _context(seLinuxOptions={"user": "root"}),
    "host-port": _container(ports=[{"containerPort": 1, "hostPort": 1}]),
    "sysctl": {"spec": {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}},
    "first-privileged": {
        "spec": {
            "initContainers": [
                {"name": "first", "image": "i", "securityContext": {"privileged": True}}
            ]
        }
    },
    "sidecar-root": {
        "spec": {
            "containers": [{"name": "side", "image": "i", "securityContext": {"runAsUser": 0}}]
        }
    },
    "other-host": _container(
        startupProbe={"httpGet": {"path": "/", "port": 80, "host": "169.254.169.254"}}
    ),
}

NULLS: dict[str, dict[str, Any]] = {
    "tolerations": {"spec": {"tolerations": None}},
    "init-containers": {"spec": {"initContainers": None}},
    "containers": {"spec": {"containers": None}},
    "env": _container(env=None),
    "spread": {"spec": {"topologySpreadConstraints": None}},
    "container-context": _container(securityContext=None),
    "security-context": {"spec": {"securityContext": None}},
    "metadata": {"metadata": None},
    "annotations": {"metadata": {"annotations": None, "labels": None}},
}
"""What Kubernetes takes for nothing."""

MISSHAPEN: dict[str, dict[str, Any]] = {
    "env": _container(env=["A=B"]),
    "mounts": _container(volumeMounts=["data"]),
    "tolerations": {"spec": {"tolerations": ["gpu"]}},
    "pull-secrets": {"spec": {"imagePullSecrets": ["registry"], "containers": ["a"]}},
    "volumes": {"spec": {"volumes": [{"name": ["a"]}]}},
}
"""What is found to be no template only when a pod is written into it."""

MALFORMED: dict[str, dict[str, Any]] = {
    "containers": {"spec": {"containers": [5]}},
    "spec": {"spec": {"volumes": {"a": 1}}},
    "context": {"spec": {"securityContext": "root"}},
    "nameless": {"spec": {"containers": [{"image": "x"}]}},
}
