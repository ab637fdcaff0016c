"""etcd and an API server in which nothing of ours is installed."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamgraft_local import ClusterSpec, kubeconfig, pki, ports, toolchain
from streamgraft_local.components import controlplane
from streamgraft_local.components.all import PORTS
from streamgraft_local.components.model import Setting
from streamgraft_local.processes import members, stop
from streamgraft_local.progress import silent
from streamgraft_local.runner import Runner


@contextmanager
def api_server(name: str, base: Path, **spec: Any) -> Iterator[tuple[Setting, Runner]]:
    """Run both until the context is left, with whatever else the runner was asked to start.

    `spec`: fields of ClusterSpec.
    """
    cluster = ClusterSpec(name=name, base=base, **spec)
    setting = Setting(cluster, cluster.home, ports.choose(PORTS, {}), toolchain.prepare(silent))
    cluster.home.create()
    pki.ensure(cluster.home.pki)
    kubeconfig.write_all(cluster.home, name, setting.url("apiserver", "https"))
    cluster_id = uuid.uuid4().hex
    runner = Runner(cluster.home, cluster_id)
    try:
        runner.start(controlplane.etcd(setting))
        runner.start(controlplane.apiserver(setting))
        yield setting, runner
    finally:
        stop(members(cluster_id), grace_seconds=10.0)
