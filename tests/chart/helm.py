"""Helm, built from its Go module, and the chart."""

import subprocess
from pathlib import Path
from typing import Any

import yaml

from streamgraft_local.paths import DEPLOY, cache_folder
from streamgraft_local.progress import silent
from streamgraft_local.toolchain.cache import Cache
from streamgraft_local.toolchain.golang import Module, build

CHART = DEPLOY / "chart"
MODULE = Module(
    "helm",
    Path(__file__).parent,
    "helm.sh/helm/v4/cmd/helm",
    note="Helm from its Go module; 2 minutes on two cores",
)
NEEDED = (
    *("--set", "kafka.bootstrapServers=kafka.kafka.svc:9092"),
    *("--set", "adapter.prometheusUrl=http://prometheus.monitoring.svc:9090"),
)
NAMESPACE = "streamgraft-system"
PLAIN = (
    *("template", "streamgraft", str(CHART), "--namespace", NAMESPACE, *NEEDED),
    *("--set", "crds.install=false", "--set", "adapter.certificate.source=secret"),
    *("--set", "adapter.certificate.authority=PEM of the authority"),
)
"""What deploy/cluster/streamgraft.yaml is rendered with."""


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Helm."""
    program = build(Cache(cache_folder(), silent), MODULE)
    command = (str(program), *arguments)
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def succeeds(*arguments: str) -> str:
    """Return what Helm prints; fails with its words if it does."""
    done = helm(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rendered(*settings: str) -> list[dict[str, Any]]:
    """Return the chart's objects, with what it needs."""
    return bare(*NEEDED, *settings)


def bare(*settings: str) -> list[dict[str, Any]]:
    """Return the chart's objects with these settings alone."""
    text = succeeds("template", "streamgraft", str(CHART), "--namespace", NAMESPACE, *settings)
    return [item for item in yaml.safe_load_all(text) if item]


def plain_manifests() -> str:
    """Return deploy/cluster/streamgraft.yaml."""
    return HEADER + succeeds(*PLAIN)


HEADER = """\
# Rendered from deploy/chart by `make generate-cluster`; do not edit. Before: deploy/crds, the
# namespace streamgraft-system, and the Secret streamgraft-metrics-adapter-tls.
# Change the image, the brokers, Prometheus' address, the claim of the checkpoints, and each
# caBundle: the base64 of the PEM of who signed the adapter's certificate. docs/operate/install.md.
"""


def main() -> None:
    """Write the plain manifests."""
    folder = DEPLOY / "cluster"
    (folder / "streamgraft.yaml").write_text(plain_manifests())


if __name__ == "__main__":
    main()
