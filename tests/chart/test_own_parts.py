"""Kafka and Prometheus that the chart brings."""

import shutil
from pathlib import Path

import pytest
import yaml
from tests.chart.helm import CHART, NAMESPACE, NEEDED, bare, helm
from tests.chart.test_chart import OWN, command, named

from streamgraft_metrics_adapter import settings as adapter_settings
from streamgraft_operator.__main__ import arguments_of

pytestmark = pytest.mark.integration


def test_kafka_and_prometheus_of_its_own() -> None:
    """The programs know them by their Services' names, which the broker tells its clients, too."""
    items = bare(*OWN)
    operator = arguments_of(command(items, "streamgraft-operator"))
    assert operator.bootstrap_servers == f"streamgraft-kafka.{NAMESPACE}.svc:9092"
    maps = named(items, "ConfigMap")
    settings = maps["streamgraft-kafka"]["data"]["server.properties"].splitlines()
    assert f"advertised.listeners=PLAINTEXT://{operator.bootstrap_servers}" in settings
    adapter = adapter_settings.parse(command(items, "streamgraft-metrics-adapter"))
    assert adapter.prometheus.url == f"http://streamgraft-prometheus.{NAMESPACE}.svc:9090"
    assert {"streamgraft-kafka", "streamgraft-prometheus"} <= named(items, "NetworkPolicy").keys()
    assert (
        not {"streamgraft-kafka", "streamgraft-prometheus"} & named(bare(*NEEDED), "Service").keys()
    )


def test_numbers_of_a_values_file_are_settings_that_kafka_takes(tmp_path: Path) -> None:
    """Helm reads them as floats, and writes large ones with an exponent."""
    settings = {"log.retention.bytes": 1 << 30, "num.partitions": 4, "compression.type": "zstd"}
    values = {"kafka": {"create": True, "broker": {"settings": settings}}}
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    items = bare("--set", "prometheus.create=true", "--values", str(tmp_path / "values.yaml"))
    held = named(items, "ConfigMap")["streamgraft-kafka"]["data"]["server.properties"]
    assert {f"{name}={value}" for name, value in settings.items()} <= {*held.splitlines()}


def test_its_prometheus_starts_anew_with_other_files() -> None:
    """It reads them only then."""

    def settings(limit: int) -> str:
        items = bare(*OWN, "--set", f"monitors.sampleLimit={limit}")
        pod = named(items, "StatefulSet")["streamgraft-prometheus"]["spec"]["template"]
        return str(pod["metadata"]["annotations"]["streamgraft.io/settings"])

    assert settings(1) == settings(1) != settings(2)


def test_its_kafka_starts_anew_with_other_settings(tmp_path: Path) -> None:
    """Those of another release of the chart, too: the properties are what is compared."""

    def settings(chart: Path) -> str:
        done = helm("template", "x", str(chart), *NEEDED[2:], "--set", "kafka.create=true")
        items = [item for item in yaml.safe_load_all(done.stdout) if item]
        pod = named(items, "StatefulSet")["streamgraft-kafka"]["spec"]["template"]
        return str(pod["metadata"]["annotations"]["streamgraft.io/settings"])

    other = tmp_path / "chart"
    shutil.copytree(CHART, other)
    template = other / "templates" / "kafka.yaml"
    assert settings(other) == settings(CHART)
    changed = template.read_text().replace("log.dirs=", "num.io.threads=4\nlog.dirs=")
    template.write_text(changed)
    assert settings(other) != settings(CHART)


def test_its_prometheus_never_fills_its_volume() -> None:
    """A full one stops it, and regions have no signals."""
    items = bare(*OWN)
    found = named(items, "StatefulSet")["streamgraft-prometheus"]["spec"]
    (flag,) = (
        part.partition("=")[2]
        for part in found["template"]["spec"]["containers"][0]["command"]
        if part.startswith("--storage.tsdb.retention.size=")
    )
    request = found["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"]
    assert int(flag.removesuffix("GB")) * 1e9 <= 0.8 * int(request.removesuffix("Gi")) * 2**30
