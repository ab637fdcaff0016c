"""An API server for the chart."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgraft_local import ClusterSpec, kubeconfig, pki, ports, toolchain
from streamgraft_local.components import controlplane
from streamgraft_local.components.all import PORTS
from streamgraft_local.components.model import Setting
from streamgraft_local.processes import members, stop
from streamgraft_local.progress import silent
from streamgraft_local.runner import Runner


@pytest.fixture
def api_server(tmp_path: Path) -> Iterator[Setting]:
    """etcd and an API server in which nothing of ours is installed."""
    spec = ClusterSpec(name="chart", base=tmp_path)
    setting = Setting(spec, spec.home, ports.choose(PORTS, {}), toolchain.prepare(silent))
    spec.home.create()
    pki.ensure(spec.home.pki)
    kubeconfig.write_all(spec.home, spec.name, setting.url("apiserver", "https"))
    cluster_id = uuid.uuid4().hex
    runner = Runner(spec.home, cluster_id)
    try:
        runner.start(controlplane.etcd(setting))
        runner.start(controlplane.apiserver(setting))
        yield setting
    finally:
        stop(members(cluster_id), grace_seconds=10.0)
