"""The Helm chart: what it refuses, what it renders, and that a real API server takes it."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from tests.chart.helm import (
    CHART,
    NAMESPACE,
    NEEDED,
    bare,
    helm,
    plain_manifests,
    rendered,
    succeeds,
)
from tests.chart.release import api_services, left_over, pods_are_restricted
from tests.promtool.check import promtool

from dashboards.boards import DASHBOARDS
from dashboards.generate import render
from streamgraft.cli._doctor_checks import OLDEST_MINOR
from streamgraft_common.access import rules_of_chart
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_local import ClusterSpec, ports, toolchain
from streamgraft_local.components.all import PORTS
from streamgraft_local.components.model import Setting
from streamgraft_local.components.prometheus import configuration
from streamgraft_local.paths import DEPLOY
from streamgraft_local.progress import silent
from streamgraft_metrics_adapter import settings as adapter_settings
from streamgraft_operator.__main__ import arguments_of

pytestmark = pytest.mark.integration

Object = dict[str, Any]
EVERYTHING = (
    *("--set", "operator.namespaces={a,b}", "--set", "checkpoints.createClaimsIn={a}"),
    *(
        "--set",
        "checkpoints.operatorClaim=streamgraft-checkpoints",
        "--set",
        "monitors.enabled=true",
    ),
    *("--set", "monitors.transportSecurity=true", "--set", "adapter.metricsConfig=rules:\n  []\n"),
    *("--set", "adapter.prometheusSecret=prometheus-client"),
    *("--set", "monitors.serviceAccount=monitoring/prometheus"),
    *("--set", "image.pullSecrets[0].name=registry", "--set", "image.pullPolicy=Always"),
    *("--set", "kafka.tls=true", "--set", "kafka.secretName=kafka-client"),
    *("--set", "adapter.prometheusHeaders.X-Scope-OrgID=team"),
    *("--set", "dashboards.enabled=true", "--set", "checkpoints.repository.s3.bucket=copies"),
)
OWN = ("--set", "kafka.create=true", "--set", "prometheus.create=true")
"""Nothing else is needed."""
BROUGHT = ("--set", "adapter.certificate.source=secret,adapter.certificate.authority=PEM")


def named(items: list[Object], kind: str) -> dict[str, Object]:
    """Return the objects of a kind by name."""
    return {item["metadata"]["name"]: item for item in items if item["kind"] == kind}


def command(items: list[Object], deployment: str) -> list[str]:
    """Return the arguments of a Deployment's program."""
    pod = named(items, "Deployment")[deployment]["spec"]["template"]["spec"]
    program: list[str] = pod["containers"][0]["command"]
    return program[3:]


def test_lint() -> None:
    succeeds("lint", "--strict", str(CHART), *NEEDED)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("kafka.bootstrapServers=kafka", "bootstrapServers"),
        ("checkpoints.repository.copies.path=/c", "copies"),
        ("adapter.prometheusUrl=prometheus:9090", "prometheusUrl"),
        ("kafka.secretName=kafka-client", "needs kafka.tls"),
        ("kafka.create=true", "/kafka/bootstrapServers"),
        ("prometheus.create=true", "/adapter/prometheusUrl"),
        ("operator.replica=3", "replica"),
        ("checkpoints.volume.nfs.server=nfs", "/checkpoints/volume"),
        ("operator.namespaces={Upper}", "namespaces"),
        ("adapter.certificate.source=certManager", "which issuer"),
        ("adapter.certificate.source=secret", "PEM of who signed"),
    ],
)
def test_wrong_values_are_refused(setting: str, words: str) -> None:
    """With an error that names the value."""
    done = helm("template", "streamgraft", str(CHART), *NEEDED, "--set", setting)
    assert done.returncode != 0
    assert words in done.stderr


def test_an_older_kubernetes_is_refused() -> None:
    """From where `doctor` does, too; definitions have fields to select by since then."""
    version = ("--kube-version", f"1.{OLDEST_MINOR - 1}.14")
    done = helm("template", "x", str(CHART), *NEEDED, *version)
    assert "incompatible with Kubernetes" in done.stderr
    succeeds("template", "x", str(CHART), *NEEDED, "--kube-version", f"1.{OLDEST_MINOR}.0")
    kinds = named(rendered(), "CustomResourceDefinition").values()
    assert [kind for kind in kinds if "selectableFields" in kind["spec"]["versions"][0]]


def test_values_without_defaults_are_asked_for() -> None:
    done = helm("template", "streamgraft", str(CHART))
    assert "bootstrapServers" in done.stderr
    assert "prometheusUrl" in done.stderr


@pytest.mark.parametrize("settings", [(), EVERYTHING], ids=["defaults", "everything"])
def test_programs_understand_their_arguments(settings: tuple[str, ...]) -> None:
    """The operator's and the adapter's own parsers read what the chart gives them."""
    items = rendered(*settings)
    operator = arguments_of(command(items, "streamgraft-operator"))
    assert operator.bootstrap_servers == "kafka.kafka.svc:9092"
    assert operator.checkpoint_volume == {
        "persistentVolumeClaim": {"claimName": "streamgraft-checkpoints"}
    }
    assert operator.kafka_secret == ("kafka-client" if settings else None)
    kept = operator.checkpoint_repository
    assert (kept and kept.s3.bucket) == ("copies" if settings else None)
    assert operator.image_pull_secret == (["registry"] if settings else [])
    assert operator.image_pull_policy == ("Always" if settings else "IfNotPresent")
    assert operator.own_namespace == NAMESPACE
    assert operator.namespace == (["a", "b"] if settings else [])
    assert bool(operator.checkpoint_root) == bool(settings)
    adapter = adapter_settings.parse(command(items, "streamgraft-metrics-adapter"))
    assert (adapter.port, adapter.refresh_seconds) == (6443, 15)
    assert bool(adapter.metrics_config) == bool(settings)
    assert bool(adapter.prometheus.credentials) == bool(settings)
    assert adapter.prometheus.headers == ({"X-Scope-OrgID": "team"} if settings else {})


def test_programs_listen_at_all_addresses() -> None:
    """Kubelets of an IPv6 cluster probe an address of IPv6, `kubectl port-forward` one of IPv4."""
    items = rendered()
    assert not arguments_of(command(items, "streamgraft-operator")).metrics_address
    assert not adapter_settings.parse(command(items, "streamgraft-metrics-adapter")).bind


def test_slow_starts_are_no_reason_to_start_again() -> None:
    """Until a program serves, only the start-up probe counts, and it has three minutes."""
    for deployment in named(rendered(), "Deployment").values():
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        startup, liveness = container["startupProbe"], container["livenessProbe"]
        assert startup["httpGet"] == liveness["httpGet"]
        assert startup["periodSeconds"] * startup["failureThreshold"] == 180


def test_rights_are_those_of_the_table_and_follow_the_scope() -> None:
    """Cluster-wide by default; with namespaces the operator is bound in these only."""
    rules = rules_of_chart()
    everywhere, scoped = rendered(), rendered(*EVERYTHING)
    role = named(everywhere, "ClusterRole")["streamgraft-operator"]
    assert role["rules"] == rules["operator"]
    assert named(everywhere, "Role")["streamgraft-console"]["rules"] == rules["console"]
    assert named(everywhere, "ClusterRole")["streamgraft-discovery"]["rules"] == rules["discovery"]
    (everybody,) = named(everywhere, "ClusterRoleBinding")["streamgraft-discovery"]["subjects"]
    assert (everybody["kind"], everybody["name"]) == ("Group", "system:authenticated")
    assert "streamgraft-operator" in named(everywhere, "ClusterRoleBinding")
    assert "streamgraft-operator" not in named(scoped, "ClusterRoleBinding")
    bound = {
        item["metadata"]["namespace"]
        for item in scoped
        if item["kind"] == "RoleBinding" and item["metadata"]["name"] == "streamgraft-operator"
    }
    assert bound == {"a", "b"}
    for name, into in (("view", {"view"}), ("edit", {"edit", "admin"})):
        role = named(everywhere, "ClusterRole")[f"streamgraft-{name}"]
        assert role["rules"] == rules[name]
        prefix = "rbac.authorization.k8s.io/aggregate-to-"
        labels = {key for key, on in role["metadata"]["labels"].items() if on == "true"}
        assert labels == {f"{prefix}{each}" for each in into}


def test_authority_of_cert_manager() -> None:
    """It makes the certificate and writes its authority into the API services."""
    issuer = "adapter.certificate.issuer.name=ours"
    items = rendered("--set", "adapter.certificate.source=certManager", "--set", issuer)
    certificate = named(items, "Certificate")["streamgraft-metrics-adapter"]
    assert certificate["spec"]["issuerRef"]["name"] == "ours"
    for service in named(items, "APIService").values():
        source = service["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
        assert source == f"{NAMESPACE}/streamgraft-metrics-adapter"
        assert "caBundle" not in service["spec"]


def test_prometheus_knows_who_signed_a_certificate_that_is_brought() -> None:
    """`kubectl create secret tls` makes a Secret without ca.crt, and no pod starts without it."""
    monitors = ("--set", "monitors.enabled=true")
    items = bare(*OWN, *monitors, *BROUGHT)
    (holder,) = (name for name in named(items, "ConfigMap") if name.endswith("-authority"))
    assert named(items, "ConfigMap")[holder]["data"] == {"ca.crt": "PEM"}
    pod = named(items, "StatefulSet")["streamgraft-prometheus"]["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["authority"] == {"name": "authority", "configMap": {"name": holder}}
    monitor = named(items, "ServiceMonitor")["streamgraft-metrics-adapter"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["tlsConfig"]["ca"] == {"configMap": {"name": holder, "key": "ca.crt"}}


def test_what_the_adapter_says_of_regions_keeps_their_namespace() -> None:
    """The Prometheus operator adds its own: replicas would not find what they learned."""
    items = rendered(*EVERYTHING)
    (adapter,) = named(items, "ServiceMonitor")["streamgraft-metrics-adapter"]["spec"]["endpoints"]
    operator = named(items, "PodMonitor")["streamgraft-operator"]["spec"]["podMetricsEndpoints"]
    assert [item["honorLabels"] for item in (adapter, *operator)] == [True, True]


def test_metrics_of_ones_own_are_a_file_as_it_was_written() -> None:
    held = named(rendered(*EVERYTHING), "ConfigMap")
    (data,) = (item["data"] for item in held.values() if "metrics.yaml" in item["data"])
    assert data == {"metrics.yaml": "rules:\n  []\n"}


def test_another_kind_of_volume_takes_the_place_of_the_claim() -> None:
    other = ("--set", "checkpoints.volume.nfs.server=nfs,checkpoints.volume.nfs.path=/x")
    items = bare(*NEEDED, *other, "--set", "checkpoints.volume.persistentVolumeClaim=null")
    (argument,) = (
        item
        for item in command(items, "streamgraft-operator")
        if item.startswith("--checkpoint-volume=")
    )
    assert json.loads(argument.partition("=")[2]) == {"nfs": {"server": "nfs", "path": "/x"}}


@pytest.mark.parametrize("monitor", ["streamgraft-operator", "streamgraft-pe"])
def test_pod_monitors_give_the_jobs_that_alerts_ask_for(monitor: str) -> None:
    """Of itself the Prometheus operator puts the monitor's namespace before its name."""
    spec = named(rendered(*EVERYTHING), "PodMonitor")[monitor]["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]
    jobs = [rule for rule in endpoint["relabelings"] if rule["targetLabel"] == "job"]
    assert jobs == [{"action": "replace", "targetLabel": "job", "replacement": monitor}]


def test_pods_have_a_limit_of_series() -> None:
    """Without, one pod could fill Prometheus, or make its queries too slow for all."""
    items = rendered(*EVERYTHING, "--set", "monitors.sampleLimit=7")
    assert named(items, "PodMonitor")["streamgraft-pe"]["spec"]["sampleLimit"] == 7


def test_an_own_prometheus_may_read_the_adapters_metrics() -> None:
    found = named(bare(*NEEDED, *EVERYTHING), "ClusterRoleBinding")["streamgraft-monitors"]
    assert found["roleRef"]["name"] == "streamgraft-prometheus"
    assert found["subjects"] == [
        {"kind": "ServiceAccount", "namespace": "monitoring", "name": "prometheus"}
    ]


@pytest.mark.parametrize("secured", ["true", "false"])
def test_its_prometheus_reads_pods_as_the_embedded_one(secured: str, tmp_path: Path) -> None:
    """The same labels, from the same pods; and Prometheus understands it all."""
    security = f"monitors.transportSecurity={secured}"
    data = named(bare(*OWN, "--set", security), "ConfigMap")["streamgraft-prometheus"]["data"]
    scrapes = {
        item["job_name"]: item for item in yaml.safe_load(data["prometheus.yml"])["scrape_configs"]
    }
    spec = ClusterSpec(name="chart", base=tmp_path)
    setting = Setting(spec, spec.home, ports.choose(PORTS, {}), toolchain.prepare(silent))
    ours = {item["job_name"]: item for item in configuration(setting)["scrape_configs"]}
    assert scrapes.keys() == ours.keys()
    pods, same = (item["streamgraft-pe"] for item in (scrapes, ours))
    assert pods["relabel_configs"] == same["relabel_configs"]
    assert pods["sample_limit"] == same["sample_limit"]
    assert ("tls_config" in pods) == (secured == "true")
    for name, text in data.items():
        (tmp_path / name).write_text(text.replace("/etc/streamgraft/prometheus", str(tmp_path)))
    promtool("check", "config", "--syntax-only", str(tmp_path / "prometheus.yml"))


def test_dashboards_and_alerts_are_those_of_the_project() -> None:
    """Unchanged by templating, in which braces mean something else."""
    items = rendered(*EVERYTHING)
    maps = named(items, "ConfigMap")
    for board in DASHBOARDS:
        held = maps[board.uid]
        assert held["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert held["data"] == {f"{board.uid}.json": render(board)}
    rules = named(items, "PrometheusRule")["streamgraft"]["spec"]
    assert rules == yaml.safe_load((DEPLOY / "alerts" / "streamgraft.yaml").read_text())
    assert not named(rendered(), "ConfigMap")


def test_plain_manifests_are_current() -> None:
    """`make generate-cluster` writes them."""
    assert (DEPLOY / "cluster" / "streamgraft.yaml").read_text() == plain_manifests()


async def test_installed_upgraded_and_uninstalled(api_server: Setting) -> None:
    """The authority lasts through an upgrade until it is rotated; the definitions stay.

    There is one release, whatever its namespace. A Secret of the chart's own is refused as one that
    is brought: Helm would delete it.
    """
    admin = api_server.home.kubeconfig("admin")
    where = ("--kubeconfig", str(admin), "--namespace", NAMESPACE)
    release = ("streamgraft", str(CHART), *where, *NEEDED)
    async with KubeClient(load_config(admin)) as client:
        label = {"pod-security.kubernetes.io/enforce": "restricted"}
        namespace = {"metadata": {"name": NAMESPACE, "labels": label}}
        await client.create("/api/v1/namespaces", namespace)
        # A controller that does not run here makes it.
        account = {"metadata": {"name": "default"}}
        await client.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
        succeeds("install", *release)
        first = await authority(client)
        await pods_are_restricted(client, {"operator", "metrics-adapter"})
        elsewhere = ("--kubeconfig", str(admin), "--namespace", "default")
        done = helm("install", "second", str(CHART), *elsewhere, *NEEDED)
        assert "invalid ownership metadata" in done.stderr
        # As the runbook has it, where the adapter is away for long and namespaces must go.
        ours = {"labelSelector": "app.kubernetes.io/name=streamgraft"}
        await client.delete("/apis/apiregistration.k8s.io/v1/apiservices", **ours)
        assert await api_services(client) == []
        succeeds("upgrade", *release, "--set", "operator.replicas=3")
        assert len(await api_services(client)) == 3
        assert await authority(client) == first
        succeeds("upgrade", *release, "--set", "adapter.certificate.rotate=true")
        assert await authority(client) != first
        done = helm("upgrade", *release, *BROUGHT)
        assert "give yours another name" in done.stderr
        succeeds("uninstall", "streamgraft", *where)
        assert await left_over(client) == []
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert len((await client.get(path))["items"]) == len(list((DEPLOY / "crds").iterdir()))
        # The next release takes over what was kept, and brings its own Kafka and Prometheus.
        succeeds("install", *release[:-4], *OWN)
        await pods_are_restricted(client, {"operator", "metrics-adapter", "kafka", "prometheus"})
        await volumes_stay(client, *release[:-4], *OWN)
        succeeds("uninstall", "streamgraft", *where)
        assert await left_over(client) == []


async def volumes_stay(client: KubeClient, *release: str) -> None:
    """Kubernetes refuses other values of claims, and the chart says what to do about it."""
    held = (*release, "--set", "checkpoints.createClaimsIn={default},checkpoints.size=10Gi")
    succeeds("upgrade", *held)
    succeeds("upgrade", *held)
    for other in ("size=5Gi", "storageClassName=other", "accessModes={ReadWriteOnce}"):
        done = helm("upgrade", *held, "--set", f"checkpoints.{other}")
        assert "kubectl delete pvc streamgraft-checkpoints -n default" in done.stderr
    for program, values in (("prometheus", "prometheus"), ("kafka", "kafka.broker")):
        name, larger = f"streamgraft-{program}", (*held, "--set", f"{values}.size=20Gi")
        done = helm("upgrade", *larger)
        assert f"kubectl patch pvc data-{name}-0" in done.stderr
        assert f"kubectl delete statefulset {name}" in done.stderr
        done = helm("upgrade", *held, "--set", f"{values}.storageClassName=other")
        assert f"kubectl delete pvc/data-{name}-0 pod/{name}-0" in done.stderr
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/{name}"
        await client.delete(path)
        succeeds("upgrade", *larger)
        (volume,) = (await client.get(path))["spec"]["volumeClaimTemplates"]
        assert volume["spec"]["resources"]["requests"]["storage"] == "20Gi"
        held = larger


async def authority(client: KubeClient) -> str:
    """Return the authority of the API services, which has signed the adapter's certificate."""
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/streamgraft-metrics-adapter-tls"
    data = (await client.get(path))["data"]
    held = x509.load_pem_x509_certificate(base64.b64decode(data["tls.crt"]))
    held.verify_directly_issued_by(x509.load_pem_x509_certificate(base64.b64decode(data["ca.crt"])))
    hosts = held.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    host = f"streamgraft-metrics-adapter.{NAMESPACE}.svc"
    assert host in hosts.get_values_for_type(x509.DNSName)
    bundles = {item["spec"]["caBundle"] for item in await api_services(client)}
    assert bundles == {data["ca.crt"]}
    return str(data["ca.crt"])
