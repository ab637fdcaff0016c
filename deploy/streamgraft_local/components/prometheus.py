"""Prometheus, which discovers the pods through the API server as it would in a real cluster."""

from functools import partial
from typing import Any

import yaml

from streamgraft_common import names
from streamgraft_local import pki
from streamgraft_local.components.model import Component, Setting, flags
from streamgraft_local.paths import DEPLOY
from streamgraft_local.probes import http

POD_JOB = "streamgraft-pe"
SAMPLE_LIMIT = 20_000
"""Series that one processing element may have."""

_POD_LABELS = {
    "pe": names.LABEL_PE,
    "region": names.LABEL_REGION,
    "channel": names.LABEL_CHANNEL,
    "stage": names.LABEL_STAGE,
    "streams_job": names.LABEL_JOB,
}


def configuration(setting: Setting) -> dict[str, Any]:
    """Return prometheus.yml: PEs, operator, adapter and Prometheus itself."""
    every = f"{setting.spec.scrape_seconds}s"
    adapter = {
        "job_name": "streamgraft-metrics-adapter",
        "scheme": "https",
        "tls_config": {
            "ca_file": str(setting.pki("ca.crt")),
            "cert_file": str(setting.pki("prometheus.crt")),
            "key_file": str(setting.pki("prometheus.key")),
            "server_name": pki.ADAPTER_HOST,
        },
        "static_configs": [_target(setting, "adapter")],
    }
    return {
        "global": {
            "scrape_interval": every,
            "scrape_timeout": every,
            "evaluation_interval": every,
        },
        "rule_files": [str(DEPLOY / "alerts" / "*.yaml")],
        "scrape_configs": [
            _pods(setting),
            {
                "job_name": "streamgraft-operator",
                "static_configs": [_target(setting, "operator")],
            },
            adapter,
            {"job_name": "prometheus", "static_configs": [_target(setting, "prometheus")]},
        ],
    }


def _target(setting: Setting, port: str) -> dict[str, Any]:
    return {"targets": [f"127.0.0.1:{setting.ports[port]}"]}


def _pods(setting: Setting) -> dict[str, Any]:
    port = names.CONTROL_PORT
    discovery = {"role": "pod", "kubeconfig_file": setting.kubeconfig("prometheus")}
    return {
        "job_name": POD_JOB,
        "kubernetes_sd_configs": [discovery],
        "sample_limit": SAMPLE_LIMIT,
        # For pods of jobs with transport security only; the scheme is each pod's own.
        "tls_config": {
            "ca_file": str(setting.pki("pe-ca.crt")),
            "server_name": names.CONTROL_HOST,
        },
        "relabel_configs": [
            _keep(f"labelpresent_{_meta(names.LABEL_PE)}", "true"),
            _keep("phase", "Running"),
            _keep("container_port_number", str(port)),
            _https(),
            _copy("namespace", "__meta_kubernetes_namespace"),
            _copy("pod", "__meta_kubernetes_pod_name"),
            *(
                _copy(label, f"__meta_kubernetes_pod_label_{_meta(key)}")
                for label, key in _POD_LABELS.items()
            ),
        ],
    }


def _https() -> dict[str, Any]:
    """Return the rule for pods whose annotation says https; the others stay as they are."""
    source = f"__meta_kubernetes_pod_annotation_{_meta(names.ANNOTATION_SCHEME)}"
    target = {"target_label": "__scheme__", "regex": "(https)"}
    return {"action": "replace", "source_labels": [source], **target}


def _meta(label: str) -> str:
    return label.replace(".", "_").replace("/", "_").replace("-", "_")


def _keep(meta: str, value: str) -> dict[str, Any]:
    source = f"__meta_kubernetes_pod_{meta}"
    return {"action": "keep", "source_labels": [source], "regex": value}


def _copy(label: str, source: str) -> dict[str, Any]:
    return {"action": "replace", "source_labels": [source], "target_label": label}


def prometheus(setting: Setting) -> Component:
    """Return Prometheus, which keeps what forecasts are made from as long as there is room."""
    values = {
        "config.file": setting.home.config / "prometheus.yml",
        "storage.tsdb.path": setting.folder("prometheus"),
        "storage.tsdb.retention.time": "16d",
        "storage.tsdb.retention.size": "1GB",
        "web.listen-address": f"127.0.0.1:{setting.ports['prometheus']}",
        "log.level": "warn",
    }
    return Component(
        "prometheus",
        (str(setting.tools.prometheus), *flags(values)),
        http(f"{setting.url('prometheus')}/-/ready"),
        # Refused before the roles are there, it would wait long before it asks again.
        needs=("resources",),
        prepare=partial(_prepare, setting),
    )


def _prepare(setting: Setting) -> None:
    file = setting.home.config / "prometheus.yml"
    file.write_text(yaml.safe_dump(configuration(setting), sort_keys=False))
