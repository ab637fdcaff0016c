"""The processes of a cluster with a real node, as the embedded environment's where they can be."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.node.place import ADDRESS, NODE

from streamgraft_local import kubeconfig, pki, probes
from streamgraft_local.components import controlplane
from streamgraft_local.components.model import Component, Setting, flags

POD_RANGE = "10.244.0.0/16"
_CLIENTS = {
    "kubelet": (f"system:node:{NODE}", ("system:nodes",)),
    "kube-proxy": ("system:kube-proxy", ()),
    "apiserver-kubelet": ("streamgraft-apiserver", ("system:masters",)),
}


def changed(component: Component, values: Mapping[str, object]) -> Component:
    """Return the component with other values of its flags."""
    rest = [part for part in component.command if _name(part) not in values]
    return replace(component, command=(*rest, *flags(values)))


def _name(part: str) -> str:
    return part.removeprefix("--").partition("=")[0] if part.startswith("--") else ""


def certificates(setting: Setting) -> None:
    """Write what kubelet, kube-proxy and the API server show each other."""
    folder = setting.home.pki
    certificate = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    signer = pki.Issued(key, certificate)
    for name, (user, groups) in _CLIENTS.items():
        pki.issue(signer, user, groups).save(folder, name)
        kubeconfig.write(setting.home, NODE, setting.url("apiserver", "https"), name)
    pki.issue(signer, NODE, hosts=[NODE, ADDRESS]).save(folder, "kubelet-serving")


def control_plane(setting: Setting) -> list[Component]:
    """Return etcd, API server, controllers and scheduler of a cluster with nodes."""
    apiserver = {
        "bind-address": "0.0.0.0",
        "advertise-address": ADDRESS,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": True,
        "kubelet-client-certificate": setting.pki("apiserver-kubelet.crt"),
        "kubelet-client-key": setting.pki("apiserver-kubelet.key"),
        "kubelet-certificate-authority": setting.pki("ca.crt"),
        "kubelet-preferred-address-types": "InternalIP",
    }
    controllers = {"controllers": "*", "pvclaimbinder-sync-period": "1s"}
    return [
        controlplane.etcd(setting),
        changed(controlplane.apiserver(setting), apiserver),
        changed(controlplane.controller_manager(setting), controllers),
        controlplane.scheduler(setting),
    ]


def dns(setting: Setting, program: Path, work: Path) -> Component:
    """Return the cluster's DNS, on the node's address."""
    ready = f"127.0.0.1:{setting.ports['prometheus']}"
    file = work / "Corefile"
    file.write_text(
        f".:53 {{\n bind {ADDRESS}\n errors\n ready {ready}\n"
        f" kubernetes cluster.local {{\n  kubeconfig {setting.kubeconfig('admin')}\n }}\n}}\n"
    )
    return Component(
        "dns", (str(program), "-conf", str(file)), probes.http(f"http://{ready}/ready")
    )


def containerd(work: Path) -> Component:
    """Return containerd."""
    socket = Path("/run/containerd/containerd.sock")
    command = ("containerd", "-c", str(work / "containerd.toml"))
    return Component("containerd", command, lambda: None if socket.exists() else "no socket")


def kubelet(setting: Setting, programs: Path, work: Path) -> Component:
    """Return the kubelet."""
    values = {
        "config": work / "kubelet.yaml",
        "kubeconfig": setting.kubeconfig("kubelet"),
        "root-dir": work / "kubelet",
        "hostname-override": NODE,
        "node-ip": ADDRESS,
        "cert-dir": work / "kubelet-pki",
    }
    ready = probes.node_ready(setting.home.kubeconfig("admin"), NODE)
    return Component("kubelet", (str(programs), "kubelet", *flags(values)), ready)


def kube_proxy(setting: Setting, programs: Path) -> Component:
    """Return kube-proxy; limits of connections are the whole machine's and stay as they are."""
    health = f"127.0.0.1:{setting.ports['operator']}"
    values = {
        "kubeconfig": setting.kubeconfig("kube-proxy"),
        "hostname-override": NODE,
        "proxy-mode": "nftables",
        "cluster-cidr": POD_RANGE,
        "conntrack-max-per-core": 0,
        "conntrack-tcp-timeout-established": 0,
        "conntrack-tcp-timeout-close-wait": 0,
        "healthz-bind-address": health,
        "metrics-bind-address": f"127.0.0.1:{setting.ports['adapter']}",
    }
    probe = probes.http(f"http://{health}/healthz")
    return Component("kube-proxy", (str(programs), "kube-proxy", *flags(values)), probe)
