"""The values of the Helm chart: what each of them changes."""

import argparse
import json
import re

import pytest
import yaml
from tests.chart.helm import CHART, NAMESPACE, NEEDED, bare, helm, rendered, succeeds
from tests.chart.test_chart import OWN, command, named

from streamgraft_common.resources import CheckpointRepository
from streamgraft_metrics_adapter import settings as adapter_settings
from streamgraft_operator.__main__ import parser as operator_parser
from streamgraft_operator.manifests.placement import NODE_LOST, NODE_LOST_SECONDS

pytestmark = pytest.mark.integration


def test_the_runbook_is_where_the_installation_has_it() -> None:
    """Alerts are read far from a checkout."""
    page = "https://docs.example/runbook"
    items = bare(*OWN, "--set", "monitors.enabled=true", "--set", f"alerts.runbookUrl={page}")
    own = named(items, "ConfigMap")["streamgraft-prometheus"]["data"]["streamgraft.yaml"]
    for found in (named(items, "PrometheusRule")["streamgraft"]["spec"], yaml.safe_load(own)):
        (first, *_) = found["groups"][0]["rules"]
        assert first["annotations"]["runbook_url"] == f"{page}#{first['alert'].lower()}"


@pytest.mark.parametrize("kind", ["s3", "redis"])
def test_a_repository_has_the_fields_of_a_job_s(kind: str) -> None:
    """Misspelt ones are refused, since the operator would not know them."""
    model = CheckpointRepository.model_json_schema()["$defs"][f"{kind.capitalize()}Repository"]
    values = json.loads((CHART / "values.schema.json").read_text())
    ours = values["properties"]["checkpoints"]["properties"]["repository"]["properties"][kind]
    assert ours["properties"].keys() == model["properties"].keys()
    assert ours["required"] == model["required"]
    field = f"checkpoints.repository.{kind}.{ours['required'][0]}"
    done = helm("template", "x", str(CHART), *NEEDED, "--set", f"{field}=abc,{field}s=abc")
    assert done.returncode != 0
    assert "not allowed" in done.stderr


def test_set_gives_the_adapter_fractions_of_seconds() -> None:
    """Helm reads what has a point as a string."""
    values = "adapter.refreshSeconds=2.5,adapter.windowSeconds=90"
    found = command(rendered("--set", values), "streamgraft-metrics-adapter")
    adapter = adapter_settings.parse(found)
    assert (adapter.refresh_seconds, adapter.window_seconds) == (2.5, 90)
    done = helm("template", "x", str(CHART), *NEEDED, "--set", "adapter.refreshSeconds=soon")
    assert "/adapter/refreshSeconds" in done.stderr


def test_the_adapter_listens_where_a_firewall_lets_the_api_server_through() -> None:
    """The Service and the probes know its port by name."""
    items = rendered("--set", "adapter.port=10250")
    assert adapter_settings.parse(command(items, "streamgraft-metrics-adapter")).port == 10250
    template = named(items, "Deployment")["streamgraft-metrics-adapter"]["spec"]["template"]
    (port,) = template["spec"]["containers"][0]["ports"]
    assert port == {"name": "https", "containerPort": 10250}
    done = helm("template", "x", str(CHART), *NEEDED, "--set", "adapter.port=443")
    assert "/adapter/port" in done.stderr


def test_the_adapter_learns_from_the_targets_that_prometheus_calls_its_own() -> None:
    """Which have other labels where somebody else wrote the scrapes."""
    items = rendered()
    default = adapter_settings.parse(command(items, "streamgraft-metrics-adapter")).own_targets
    assert default == adapter_settings.OWN_TARGETS
    matchers = 'job="adapter",cluster=~"a|b"'
    values = ("--set", f"adapter.ownTargets={matchers.replace(',', chr(92) + ',')}")
    found = command(rendered(*values), "streamgraft-metrics-adapter")
    assert adapter_settings.parse(found).own_targets == matchers
    for wrong in ("", "adapter", "{}"):
        done = helm("template", "x", str(CHART), *NEEDED, "--set", f"adapter.ownTargets={wrong}")
        assert "/adapter/ownTargets" in done.stderr


@pytest.mark.parametrize(
    ("template", "parser"),
    [("operator", operator_parser()), ("adapter", adapter_settings.parser())],
    ids=["operator", "adapter"],
)
def test_the_chart_sets_every_argument(template: str, parser: argparse.ArgumentParser) -> None:
    """All but what a pod has of itself: its account, and all of its addresses."""
    text = (CHART / "templates" / f"{template}.yaml").read_text()
    options = {action.option_strings[-1] for action in parser._actions} - {"--help"}
    left = {option for option in options if not re.search(rf"{option}\b[^-]", text)}
    assert left <= {"--kubeconfig", "--bind"}


@pytest.mark.parametrize("program", ["operator", "adapter"])
def test_pods_leave_a_lost_node_as_soon_as_those_of_jobs(program: str) -> None:
    """An operator has to start these elsewhere; unless somebody wants it otherwise."""
    name = {"operator": "streamgraft-operator", "adapter": "streamgraft-metrics-adapter"}[program]

    def seconds(*settings: str) -> dict[str | None, int | None]:
        spec = named(rendered(*settings), "Deployment")[name]["spec"]["template"]["spec"]
        (spread,) = spec["topologySpreadConstraints"]
        assert spread["matchLabelKeys"] == ["pod-template-hash"]
        return {item.get("key"): item.get("tolerationSeconds") for item in spec["tolerations"]}

    usual = dict.fromkeys(NODE_LOST, NODE_LOST_SECONDS)
    assert seconds() == usual
    own = f"{program}.tolerations[0]"
    values = f"{own}.key={NODE_LOST[0]},{own}.operator=Exists,{program}.tolerations[1].key=spot"
    assert seconds("--set", values) == {**usual, NODE_LOST[0]: None, "spot": None}
    assert seconds("--set", f"{own}.operator=Exists") == {None: None}


def test_a_token_may_come_from_a_secret() -> None:
    """Prometheus may refuse monitors that name files (arbitraryFSAccessThroughSMs.deny)."""
    monitors = ("--set", "monitors.enabled=true")

    def endpoint(*settings: str) -> dict[str, object]:
        monitor = named(rendered(*monitors, *settings), "ServiceMonitor")
        (found,) = monitor["streamgraft-metrics-adapter"]["spec"]["endpoints"]
        return dict(found)

    assert "bearerTokenFile" in endpoint()
    found = endpoint("--set", "monitors.tokenSecret=reader")
    assert "bearerTokenFile" not in found
    assert found["authorization"] == {"credentials": {"name": "reader", "key": "token"}}


def notes(*settings: str) -> str:
    """Return what Helm says behind an installation."""
    dry = ("install", "streamgraft", str(CHART), "--dry-run=client", "--namespace", NAMESPACE)
    return succeeds(*dry, *settings).partition("NOTES:")[2]


def test_notes_say_how_the_claim_is_mounted() -> None:
    said = notes(*NEEDED, "--set", "checkpoints.accessModes={ReadWriteOnce}")
    assert "streamgraft-checkpoints (ReadWriteOnce)" in said


def test_notes_say_that_alerts_lead_nowhere() -> None:
    """By default, if there are any."""
    known = ("--set", "alerts.runbookUrl=https://docs.example/runbook")
    assert "set alerts.runbookUrl" in notes(*OWN)
    assert "set alerts.runbookUrl" in notes(*NEEDED, "--set", "monitors.enabled=true")
    assert "runbookUrl" not in notes(*OWN, *known)
    assert "runbookUrl" not in notes(*NEEDED)


def test_pods_name_the_volumes_that_a_node_may_take_with_it() -> None:
    """Otherwise the cluster autoscaler keeps their nodes for ever. Other annotations stay."""
    programs = ("operator", "adapter")
    values = (f"{program}.podAnnotations.a=b" for program in programs)
    items = bare(*OWN, *(part for value in values for part in ("--set", value)))
    for item in (*named(items, "Deployment").values(), *named(items, "StatefulSet").values()):
        template = item["spec"]["template"]
        found = template["metadata"]["annotations"]
        local = [each["name"] for each in template["spec"]["volumes"] if "emptyDir" in each]
        told = found.get("cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes", "")
        assert told == ",".join(local), item["metadata"]["name"]
        assert (item["kind"] == "Deployment") == (found.get("a") == "b")
    own = "cluster-autoscaler\\.kubernetes\\.io/safe-to-evict-local-volumes=others"
    found = named(rendered("--set", f"operator.podAnnotations.{own}"), "Deployment")
    operator = found["streamgraft-operator"]["spec"]["template"]["metadata"]["annotations"]
    assert list(operator.values()) == ["others"]


def test_set_gives_labels_and_annotations_that_kubernetes_takes() -> None:
    """Helm reads what looks like a number or a boolean as one."""
    values = [
        *("operator.podAnnotations.prometheus\\.io/scrape=true", "adapter.podAnnotations.a=1"),
        *(f"{program}.serviceAccount.annotations.a=1" for program in ("operator", "adapter")),
        *("dashboards.enabled=true", "dashboards.labels.grafana_dashboard=1"),
        *("monitors.enabled=true", "monitors.labels.release=1.5"),
    ]
    items = rendered(*(part for value in values for part in ("--set", value)))
    operator = named(items, "Deployment")["streamgraft-operator"]["spec"]["template"]["metadata"]
    assert operator["annotations"]["prometheus.io/scrape"] == "true"
    adapter = named(items, "Deployment")["streamgraft-metrics-adapter"]["spec"]["template"]
    assert adapter["metadata"]["annotations"]["a"] == "1"
    for account in named(items, "ServiceAccount").values():
        assert account["metadata"]["annotations"] == {"a": "1"}
    assert (
        "annotations" not in named(rendered(), "ServiceAccount")["streamgraft-operator"]["metadata"]
    )
    dashboard = named(items, "ConfigMap")["streamgraft-regions"]["metadata"]["labels"]
    assert dashboard["grafana_dashboard"] == "1"
    assert named(items, "PodMonitor")["streamgraft-operator"]["metadata"]["labels"]["release"] == (
        "1.5"
    )
    done = helm("template", "x", str(CHART), *NEEDED, "--set", "operator.podAnnotations.a.b=c")
    assert done.returncode != 0
