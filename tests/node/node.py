"""One node with its control plane, started and disturbed from within its namespaces."""

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tests.node import components, programs

from streamgraft_local import ClusterSpec, kubeconfig, pki, ports, toolchain
from streamgraft_local.components.all import PORTS
from streamgraft_local.components.model import Component, Setting
from streamgraft_local.errors import ComponentError
from streamgraft_local.progress import silent
from streamgraft_local.runner import Runner

_PATIENCE_SECONDS = 180.0
_ATTEMPTS, _SETTLED_SECONDS = 10, 3.0
"""Of a kubelet to start, and how long it must have lasted to count as started."""


class Node:
    """All processes of the cluster; what is written lies below `work`."""

    def __init__(self, work: Path) -> None:
        spec = ClusterSpec(name="cluster", base=work)
        tools = toolchain.prepare(silent)
        self.setting = Setting(spec, spec.home, ports.choose(PORTS, {}), tools)
        self._work = work
        self._programs = programs.node_programs(silent)
        self._runner = Runner(spec.home, uuid.uuid4().hex)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.setting.home.kubeconfig("admin")

    def start(self, archives: Sequence[Path]) -> None:
        """Start everything, with images that can't be pulled."""
        home = self.setting.home
        home.create()
        pki.ensure(home.pki)
        kubeconfig.write_all(home, "node", self.setting.url("apiserver", "https"))
        components.certificates(self.setting)
        self._start(components.containerd(self._work))
        for archive in archives:
            subprocess.run(
                ["ctr", "-n", "k8s.io", "images", "import", str(archive)],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        for component in (*components.control_plane(self.setting), self._kubelet()):
            self._start(component)
        self._start(components.kube_proxy(self.setting, self._programs))
        self._start(components.dns(self.setting, programs.dns(silent), self._work))

    def tag(self, image: str, name: str) -> None:
        """Give an image a further name, as that of another version."""
        subprocess.run(
            ["ctr", "-n", "k8s.io", "images", "tag", image, name],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def kill_containerd(self) -> None:
        """End containerd at once, as a crash does, and start it again."""
        self._kill("containerd", signal.SIGKILL)
        Path("/run/containerd/containerd.sock").unlink()
        self._start(components.containerd(self._work))

    def restart_kubelet(self) -> None:
        """End the kubelet in order, and start it again, as often as it ends at once.

        It does while containerd has only begun to start, which its socket does not show; systemd
        would do the same. The node counts as ready all that time.
        """
        self._kill("kubelet", signal.SIGTERM)
        for _ in range(_ATTEMPTS):
            with suppress(ComponentError):
                self._start(self._kubelet())
            time.sleep(_SETTLED_SECONDS)
            if self._runner.process("kubelet") is not None:
                return
        raise AssertionError("the kubelet ends each time that it is started")

    def _kubelet(self) -> Component:
        return components.kubelet(self.setting, self._programs, self._work)

    def _kill(self, name: str, number: signal.Signals) -> None:
        process = self._runner.process(name)
        assert process is not None, f"{name} does not run"
        os.kill(process.pid, number)
        os.waitpid(process.pid, 0)

    def _start(self, component: Component) -> None:
        self._runner.start(replace(component, ready_seconds=_PATIENCE_SECONDS))
