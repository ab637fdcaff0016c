"""The file of further metrics: what is read, what is refused and how, and what is asked for."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from streamgraft_metrics_adapter.rules.configuration import (
    BUILT_IN,
    ConfigurationError,
    MetricRule,
    merged,
    read,
    seconds_of,
)
from streamgraft_metrics_adapter.rules.configuration_file import ConfigurationFile

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "resource": "pods",
    "nameLabel": "pod",
    "namespaceLabel": "namespace",
}
RULE: dict[str, Any] = {
    "name": "requests_per_second",
    "object": POD,
    "series": 'requests_total{pod!=""}',
    "query": "sum by (namespace, pod) (rate(requests_total[2m]))",
    "window": "2m",
}


def written(folder: Path, *rules: dict[str, Any]) -> Path:
    """Write a configuration."""
    file = folder / "metrics.yaml"
    file.write_text(yaml.safe_dump({"metrics": list(rules)}))
    return file


def test_a_rule_is_one_query_for_values_and_their_sample_times(tmp_path: Path) -> None:
    (rule,) = read(written(tmp_path, RULE))
    assert (rule.window, rule.max_age, rule.aggregation) == (120.0, 60.0, "sum")
    assert rule.promql() == (
        'label_replace((sum by (namespace, pod) (rate(requests_total[2m]))), "streamgraft_part",'
        ' "value", "", "") or label_replace(min by (namespace, pod)'
        ' (timestamp(requests_total{pod!=""})), "streamgraft_part", "time", "", "")'
    )


def test_a_rule_may_say_how_old_its_samples_are(tmp_path: Path) -> None:
    (rule,) = read(written(tmp_path, {**RULE, "ageSeries": "age_seconds"}))
    assert "min by (namespace, pod) (timestamp(age_seconds) - age_seconds)" in rule.promql()
    with pytest.raises(ConfigurationError, match="`ageSeries` is no selector"):
        read(written(tmp_path, {**RULE, "ageSeries": "1 +"}))


def test_what_is_always_served_is_valid() -> None:
    names = {(rule.object.resource if rule.object else "", rule.name) for rule in read(BUILT_IN)}
    assert ("pods", "utilization") in names
    assert ("", "streamgraft_total_lag") in names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": None}, r"metrics\[0\]\.query"),
        ({"window": "2 minutes"}, "no duration such as 30s"),
        ({"maxAge": "0s"}, "greater than 0"),
        ({"object": None}, "either `object` or `external`"),
        ({"external": {}}, "either `object` or `external`"),
        ({"series": "rate(requests_total[2m])"}, "no selector such as"),
        ({"name": "a/b"}, r"metrics\[0\]\.name"),
        ({"aggregation": "median"}, "'sum', 'avg', 'min' or 'max'"),
        ({"object": POD | {"nameLabel": "po d"}}, r"metrics\[0\]\.object\.nameLabel"),
        ({"colour": "red"}, r"metrics\[0\]\.colour: Extra"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read(written(tmp_path, RULE | change))


@pytest.mark.parametrize("text", ["metrics: [", "[]", "metrics: {}", "\tmetrics"])
def test_what_is_no_configuration_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "metrics.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"metrics\.yaml"):
        read(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        ConfigurationFile(tmp_path / "nothing.yaml")


def test_two_rules_for_the_same_metric_are_refused() -> None:
    rule = MetricRule.model_validate(RULE)
    with pytest.raises(ConfigurationError, match='"requests_per_second" of pods is there twice'):
        merged([rule], [rule])


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("1m30s", 90), ("1h", 3600), ("500ms", 0.5)]
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


def test_a_changed_file_is_taken_over_and_a_bad_one_is_not(tmp_path: Path) -> None:
    file = written(tmp_path, RULE)
    configuration = ConfigurationFile(file)
    names = [rule.name for rule in configuration.rules]
    assert names[-1] == "requests_per_second"
    assert not configuration.reload()
    file.unlink()
    written(tmp_path, RULE, RULE)
    assert not configuration.reload()
    assert [rule.name for rule in configuration.rules] == names
    file.unlink()
    written(tmp_path, RULE | {"name": "other"})
    assert configuration.reload()
    assert [rule.name for rule in configuration.rules] == [*names[:-1], "other"]
