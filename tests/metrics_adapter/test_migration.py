"""From prometheus-adapter's configuration to ours, in and out, and what is said of the rest."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from streamgraft_metrics_adapter.rules.command_line import main
from streamgraft_metrics_adapter.rules.configuration import read
from streamgraft_metrics_adapter.rules.migration import migrated

REQUESTS: dict[str, Any] = {
    "seriesQuery": 'http_requests_total{namespace!="",pod!=""}',
    "resources": {
        "overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}
    },
    "name": {"matches": "^(.*)_total$", "as": "${1}_per_second"},
    "metricsQuery": "sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)",
}
QUEUE = {
    "seriesQuery": '{__name__=~"^queue_length$",queue!=""}',
    "resources": {"namespaced": False},
    "metricsQuery": "max(<< .Series >>{<< .LabelMatchers >>}) by (<< .GroupBy >>, queue)",
}


def test_one_rule_becomes_one_per_kind_of_object() -> None:
    result = migrated({"rules": [REQUESTS]})
    assert result.problems == []
    of_namespace, of_pod = result.metrics
    assert of_pod == {
        "name": "http_requests_per_second",
        "object": {
            "apiVersion": "v1",
            "kind": "Pod",
            "resource": "pods",
            "nameLabel": "pod",
            "namespaceLabel": "namespace",
        },
        "series": 'http_requests_total{namespace!="",pod!=""}',
        "query": 'sum(rate(http_requests_total{namespace!="",pod!=""}[2m])) by (namespace, pod)',
        "window": "2m",
    }
    assert of_namespace["object"]["kind"] == "Namespace"
    assert of_namespace["query"].endswith("by (namespace)")


def test_external_rules() -> None:
    (metric,) = migrated({"externalRules": [QUEUE]}).metrics
    assert metric == {
        "name": "queue_length",
        "external": {},
        "series": 'queue_length{queue!=""}',
        "query": "max(queue_length{}) by (queue)",
    }


def test_labels_that_tell_objects_apart_are_kept() -> None:
    """There the namespace is a condition of each query, here one query answers for all of them."""
    rule = QUEUE | {"resources": {}, "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>}) by (q)"}
    (metric,) = migrated({"externalRules": [rule]}).metrics
    assert metric["query"] == 'sum(queue_length{namespace!=""}) by (q, namespace)'
    rule |= {"metricsQuery": "<<.Series>>{<<.LabelMatchers>>} > 0"}
    (metric,) = migrated({"externalRules": [rule]}).metrics
    assert metric["query"] == 'queue_length{namespace!=""} > 0'


def test_a_config_map_is_looked_into() -> None:
    inner = yaml.safe_dump({"rules": [REQUESTS]})
    around = {"kind": "ConfigMap", "data": {"config.yaml": inner}}
    assert migrated(around) == migrated({"rules": [REQUESTS]})
    with pytest.raises(ValueError, match="2 files"):
        migrated(around | {"data": {"a": inner, "b": inner}})


def test_templates_of_labels_that_the_series_query_names() -> None:
    rule = REQUESTS | {
        "seriesQuery": 'x{kube_namespace!="",kube_pod!=""}',
        "resources": {"template": "kube_<<.Resource>>"},
        "name": {},
    }
    names = [item["object"]["nameLabel"] for item in migrated({"rules": [rule]}).metrics]
    assert names == ["kube_namespace", "kube_pod"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"seriesQuery": '{__name__=~"^container_.*"}'}, "one rule per metric"),
        ({"resources": {"template": "<<.Resource>>"}, "seriesQuery": "x"}, "resources.overrides"),
        ({"resources": {}}, "names no kinds of objects"),
        (
            {"resources": {"overrides": {"n": {"resource": "namespace"}, "v": {"resource": "vm"}}}},
            "what vm is is not known",
        ),
        ({"resources": {"overrides": {"pod": {"resource": "pod"}}}}, "in which namespace"),
        ({"metricsQuery": "sum(x{<<index .LabelValuesByName `pod`>>})"}, "LabelValuesByName"),
        ({"metricsQuery": None}, "no metricsQuery"),
        ({"metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>})"}, "drops namespace"),
        ({"name": {"matches": "^a"}}, "does not match"),
        ({"seriesFilters": [{"isNot": "_total$"}]}, "seriesFilters"),
    ],
)
def test_what_has_no_counterpart_is_said(change: dict[str, Any], problem: str) -> None:
    result = migrated({"rules": [REQUESTS | change, REQUESTS]})
    assert len(result.metrics) >= 2
    (found,) = result.problems
    assert found.startswith("rules[0]: ")
    assert problem in found


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `migrate` prints is what `check` takes."""
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({"rules": [REQUESTS], "resourceRules": {"cpu": {}}}))
    assert main(["migrate", str(file)]) == 1
    printed = capsys.readouterr()
    assert "metrics.k8s.io" in printed.err
    ours = tmp_path / "ours.yaml"
    ours.write_text(printed.out)
    assert [rule.name for rule in read(ours)] == ["http_requests_per_second"] * 2
    assert main(["check", str(ours)]) == 0
    assert main(["check", str(file)]) == 2
    assert "rules: Extra" in capsys.readouterr().err
