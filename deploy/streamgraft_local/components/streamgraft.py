"""Our own components: process node, operator and metrics adapter."""

import json
import os
import sys

from streamgraft_common.access import SYSTEM_NAMESPACE
from streamgraft_local import probes
from streamgraft_local.components.kafka import bootstrap_servers
from streamgraft_local.components.model import Component, Setting

NODE_NAME = "local"


def node(setting: Setting) -> Component:
    """Return the process node; its "image" is this Python with Java and the connector's jars."""
    image = {
        "STREAMGRAFT_JAVA": str(setting.tools.java),
        "STREAMGRAFT_JARS": str(setting.tools.driver_jars),
    }
    if archive := setting.tools.cds_archive:
        image["STREAMGRAFT_CDS_ARCHIVE"] = str(archive)
    return Component(
        "node",
        _python(
            "streamgraft_local.node",
            *("--kubeconfig", setting.kubeconfig("node")),
            *("--home", str(setting.folder("node"))),
            *("--name", NODE_NAME),
            *("--client-ca", str(setting.pki("backend-ca.crt"))),
            *("--metrics-port", str(setting.ports["node-metrics"])),
            *("--metrics-cert", str(setting.pki("node-metrics.crt"))),
            *("--metrics-key", str(setting.pki("node-metrics.key"))),
            *("--metrics-client-ca", str(setting.pki("front-proxy-ca.crt"))),
            *(part for key, value in image.items() for part in ("--image-env", f"{key}={value}")),
        ),
        probes.node_ready(setting.home.kubeconfig("admin"), NODE_NAME),
        needs=("resources",),
        grace_seconds=40.0,
    )


def operator(setting: Setting) -> Component:
    """Return the operator."""
    checkpoints = setting.home.checkpoints
    volume = {"hostPath": {"path": str(checkpoints), "type": "DirectoryOrCreate"}}
    return Component(
        "operator",
        _python(
            "streamgraft_operator",
            *("--kubeconfig", setting.kubeconfig("operator")),
            *("--bootstrap-servers", bootstrap_servers(setting)),
            *("--checkpoint-volume", json.dumps(volume)),
            *("--checkpoint-root", str(checkpoints)),
            *("--driver-starts", str(max(1, (os.cpu_count() or 1) // 2))),
            *("--bundle-network", "127.0.0.0/8"),
            *("--image", setting.spec.image),
            *("--own-namespace", SYSTEM_NAMESPACE),
            *("--metrics-port", str(setting.ports["operator"])),
        ),
        probes.http(f"{setting.url('operator')}/metrics"),
        needs=("resources",),
    )


def adapter(setting: Setting) -> Component:
    """Return the metrics adapter, reached by the API server through an APIService."""
    return Component(
        "adapter",
        _python(
            "streamgraft_metrics_adapter",
            *("--kubeconfig", setting.kubeconfig("adapter")),
            *("--prometheus-url", setting.url("prometheus")),
            *("--window-seconds", str(setting.spec.metrics_window_seconds)),
            *("--bind", "127.0.0.1"),
            *("--port", str(setting.ports["adapter"])),
            *("--tls-cert", str(setting.pki("adapter-serving.crt"))),
            *("--tls-key", str(setting.pki("adapter-serving.key"))),
        ),
        probes.http(f"{setting.url('adapter', 'https')}/healthz", setting.pki("ca.crt")),
        needs=("resources",),
    )


def _python(module: str, *arguments: str) -> tuple[str, ...]:
    # -P: a folder named like a module in the caller's directory must not be imported.
    return (sys.executable, "-P", "-m", module, *arguments)
