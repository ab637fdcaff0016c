"""Where the node lives: namespaces with an address, and files that keep the machine as it was.

Runs as PID 1 of the namespaces; when it ends, processes, mounts and the network end with it.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.node.preflight import CGROUPS

ADDRESS = "10.66.0.1"
NODE = "node-1"
GROUP = "streamgraft-node"
_SYSCTLS = {"vm/overcommit_memory": "1", "kernel/panic": "10", "kernel/panic_on_oops": "1"}
"""The kubelet wants these of the whole machine: it is shown files that say so."""
_RESOLVER = f"nameserver {ADDRESS}\nsearch cluster.local\noptions ndots:5"
_OWN = ("/run", "/var/lib/kubelet", "/var/log/containers")


@contextmanager
def cgroups() -> Iterator[None]:
    """Make the node's control groups, and remove them with all below. Runs outside."""
    for controller in _controllers():
        (controller / GROUP).mkdir(exist_ok=True)
    # The weight of a few processes: beside much else the whole node would weigh as one.
    (CGROUPS / "cpu" / GROUP / "cpu.shares").write_text("4096")
    for name in ("cpuset.cpus", "cpuset.mems"):
        content = (CGROUPS / "cpuset" / name).read_text()
        (CGROUPS / "cpuset" / GROUP / name).write_text(content)
    try:
        yield
    finally:
        for controller in _controllers():
            found = (controller / GROUP).rglob("*/")
            for folder in sorted(found, key=lambda path: len(path.parts), reverse=True):
                folder.rmdir()
            (controller / GROUP).rmdir()


def cgroups_left() -> list[str]:
    """Return control groups of a node that ended."""
    return [str(folder / GROUP) for folder in _controllers() if (folder / GROUP).exists()]


def _controllers() -> list[Path]:
    return sorted({folder.resolve() for folder in CGROUPS.iterdir() if folder.is_dir()})


def furnish(work: Path) -> None:
    """Mount what programs of a node write to, and bring up the network. Runs inside."""
    _do("hostname", NODE)
    _do("mount", "--make-rshared", "/")
    for folder in _OWN:
        Path(folder).mkdir(parents=True, exist_ok=True)
        _do("mount", "-t", "tmpfs", "tmpfs", folder)
    for folder in ("containerd", "cni", "lock"):
        (Path("/run") / folder).mkdir()
    for number, (name, value) in enumerate(_SYSCTLS.items()):
        said = work / f"sysctl-{number}"
        said.write_text(f"{value}\n")
        _do("mount", "--bind", str(said), f"/proc/sys/{name}")
    _do("ip", "link", "set", "lo", "up")
    # An empty bridge: nothing leaves by it.
    _do("ip", "link", "add", "node0", "type", "bridge")
    _do("ip", "addr", "add", f"{ADDRESS}/24", "dev", "node0")
    _do("ip", "link", "set", "node0", "up")
    _do("ip", "route", "add", "default", "dev", "node0")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    (work / "resolv.conf").touch()
    # What runs beside the pods finds their services as they do.
    (work / "hosts-resolv.conf").write_text(f"{_RESOLVER}\n")
    _do("mount", "--bind", str(work / "hosts-resolv.conf"), str(Path("/etc/resolv.conf").resolve()))
    for name in ("containerd.toml", "kubelet.yaml", "bridge.conflist"):
        source = Path(__file__).parent / "config" / name
        target = work / "cni" / name if name.endswith(".conflist") else work / name
        target.parent.mkdir(exist_ok=True)
        text = source.read_text().replace("@WORK@", str(work)).replace("@ADDRESS@", ADDRESS)
        target.write_text(text.replace("@GROUP@", GROUP))


def _do(*command: str) -> None:
    subprocess.run(command, check=True)


def forget(work: Path) -> None:
    """Remove the node's files."""
    shutil.rmtree(work, ignore_errors=True)
