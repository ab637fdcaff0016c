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


def retention(*settings: str) -> str:
    """Return what the chart's Prometheus keeps at most."""
    found = named(bare(*OWN, *settings), "StatefulSet")["streamgraft-prometheus"]["spec"]
    (flag,) = (
        part.partition("=")[2]
        for part in found["template"]["spec"]["containers"][0]["command"]
        if part.startswith("--storage.tsdb.retention.size=")
    )
    return str(flag)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        *(("10Gi", "8192MB"), ("5Gi", "4096MB"), ("500Mi", "400MB"), ("2.5Ti", "2097152MB")),
        *(("10G", "7628MB"), ("800M", "609MB"), ("1T", "762939MB")),
    ],
)
def test_its_prometheus_never_fills_its_volume(size: str, expected: str) -> None:
    """A full one stops it, and regions have no signals. Its MB are MiB."""
    assert retention("--set", f"prometheus.size={size}") == expected


def test_its_prometheus_keeps_what_is_asked_for_if_it_fits() -> None:
    fits = ("--set", "prometheus.size=5Gi,prometheus.retentionSize=4GB")
    assert retention(*fits) == "4GB"
    for values in ("size=5Gi,prometheus.retentionSize=8GB", "retentionSize=1TB"):
        done = helm("template", "x", str(CHART), *OWN, "--set", f"prometheus.{values}")
        assert done.returncode != 0
        assert "is more than 80 % of prometheus.size" in done.stderr


@pytest.mark.parametrize("size", ["10", "10Ki", "1e10", "plenty"])
def test_a_size_that_is_not_understood_is_refused(size: str) -> None:
    done = helm("template", "x", str(CHART), *OWN, "--set-string", f"prometheus.size={size}")
    assert done.returncode != 0
    assert "/prometheus/size" in done.stderr
