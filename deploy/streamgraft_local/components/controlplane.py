"""etcd and Kubernetes' own components."""

from streamgraft_local import pki
from streamgraft_local.components.model import Component, Setting, flags
from streamgraft_local.probes import http

SERVICE_RANGE = "10.0.0.0/16"
FEATURE_GATES = "HPAScaleToZero=true"
"""Alpha in Kubernetes 1.36: regions may sleep."""


def etcd(setting: Setting) -> Component:
    """Return etcd without fsync: a power cut may lose data, which a local environment can bear.

    Only the API server gets in. Loopback is open to all users of the machine, and to web pages.
    """
    client, peer = setting.url("etcd", "https"), setting.url("etcd-peer", "https")
    file = setting.pki
    tls = {
        "client-cert-auth": True,
        "trusted-ca-file": file("backend-ca.crt"),
        "cert-file": file("etcd.crt"),
        "key-file": file("etcd.key"),
    }
    values = {
        "data-dir": setting.folder("etcd"),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        **tls,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        **{f"peer-{name}": value for name, value in tls.items()},
        "initial-cluster": f"default={peer}",
        "force-new-cluster": True,  # the peer port may have changed since the last start
        "enable-grpc-gateway": False,
        "unsafe-no-fsync": True,
        "log-level": "warn",
    }
    probe = http(f"{client}/readyz", file("backend-ca.crt"), file("backend-client"))
    return Component("etcd", _command(setting, "etcd", values), probe)


def apiserver(setting: Setting) -> Component:
    """Return kube-apiserver with RBAC, service accounts and the aggregation layer."""
    file = setting.pki
    values = {
        "etcd-servers": setting.url("etcd", "https"),
        "etcd-cafile": file("backend-ca.crt"),
        "etcd-certfile": file("backend-client.crt"),
        "etcd-keyfile": file("backend-client.key"),
        "kubelet-client-certificate": file("backend-client.crt"),
        "kubelet-client-key": file("backend-client.key"),
        "bind-address": "127.0.0.1",
        "secure-port": setting.ports["apiserver"],
        "tls-cert-file": file("apiserver.crt"),
        "tls-private-key-file": file("apiserver.key"),
        "client-ca-file": file("ca.crt"),
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": file("service-account.key"),
        "service-account-signing-key-file": file("service-account.key"),
        "service-cluster-ip-range": SERVICE_RANGE,
        "requestheader-client-ca-file": file("front-proxy-ca.crt"),
        "requestheader-allowed-names": pki.FRONT_PROXY,
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": file("front-proxy.crt"),
        "proxy-client-key-file": file("front-proxy.key"),
        "feature-gates": FEATURE_GATES,
        "profiling": False,
    }
    probe = http(f"{setting.url('apiserver', 'https')}/readyz", file("ca.crt"))
    command = _command(setting, "kube-apiserver", values)
    return Component("kube-apiserver", command, probe, needs=("etcd",))


def controller_manager(setting: Setting) -> Component:
    """Return kube-controller-manager: the HorizontalPodAutoscaler and the others."""
    config = setting.kubeconfig("controller-manager")
    values = {
        **_secure(setting, "controller-manager", config),
        "service-account-private-key-file": setting.pki("service-account.key"),
        "root-ca-file": setting.pki("ca.crt"),
        "use-service-account-credentials": True,
        "feature-gates": FEATURE_GATES,
        "horizontal-pod-autoscaler-sync-period": f"{setting.spec.hpa_sync_seconds}s",
        # Nothing here has disks to attach, routes or a cloud.
        "controllers": ",".join(
            [
                "*",
                "-persistentvolume-attach-detach-controller",
                "-node-route-controller",
                "-service-lb-controller",
                "-cloud-node-lifecycle-controller",
                # Pods have loopback addresses here, which no Endpoints may have: they would only
                # fail, again and again. Nothing here needs Endpoints.
                "-endpoints-controller",
                "-endpointslice-controller",
                "-endpointslice-mirroring-controller",
            ]
        ),
    }
    command = _command(setting, "kube-controller-manager", values)
    probe = http(f"{setting.url('controller-manager', 'https')}/healthz", setting.pki("ca.crt"))
    return Component("kube-controller-manager", command, probe, needs=("kube-apiserver",))


def scheduler(setting: Setting) -> Component:
    """Return kube-scheduler."""
    values = _secure(setting, "scheduler", setting.kubeconfig("scheduler"))
    probe = http(f"{setting.url('scheduler', 'https')}/healthz", setting.pki("ca.crt"))
    command = _command(setting, "kube-scheduler", values)
    return Component("kube-scheduler", command, probe, needs=("kube-apiserver",))


def _secure(setting: Setting, port: str, config: str) -> dict[str, object]:
    return {
        "kubeconfig": config,
        "authentication-kubeconfig": config,
        "authorization-kubeconfig": config,
        "leader-elect": False,
        "bind-address": "127.0.0.1",
        "secure-port": setting.ports[port],
        "tls-cert-file": setting.pki("controllers.crt"),
        "tls-private-key-file": setting.pki("controllers.key"),
        "profiling": False,
    }


def _command(setting: Setting, program: str, values: dict[str, object]) -> tuple[str, ...]:
    return (str(setting.tools.controlplane), program, *flags(values))
