"""Every alert has an entry in the runbook, asks for metrics that there are, and fires."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest
from tests.fuzz.adapter_world import NOWHERE
from tests.promtool.check import passes

from streamgraft_autoscaler import Reason
from streamgraft_metrics_adapter.api import exposition
from streamgraft_operator.assembly import collectors_of
from streamgraft_operator.kit import metrics
from streamgraft_operator.kit.caches import Caches
from streamgraft_pe_runtime.metrics import PeMetrics

ROOT = Path(__file__).parents[2]
GROUPS = yaml.safe_load((ROOT / "deploy/alerts/streamgraft.yaml").read_text())["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
CASES = ROOT / "tests/promtool/alerts.yaml"
NOT_ALERTED = {Reason.WARMING_UP, Reason.BLACKOUT, Reason.SOURCE_UNAVAILABLE}
"""The first passes with load, the second is what the user asked for, and the third has an alert of
its own, StreamgraftPrometheusQueriesFail."""


def test_every_alert_has_its_entry_in_the_runbook() -> None:
    headings = re.findall(
        r"^## (\S+)$", (ROOT / "docs/operate/runbook.md").read_text(), re.MULTILINE
    )
    assert sorted(headings) == sorted(rule["alert"] for rule in RULES)
    for rule in RULES:
        wanted = f"docs/operate/runbook.md#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook_url"] == wanted
        assert rule["labels"]["severity"] in ("critical", "warning")


async def test_alerts_ask_for_metrics_that_there_are(called: Any) -> None:
    exported = (await exposition.text(called.provider)).decode()
    exported += PeMetrics(1).exposition().decode()
    exported += generate_latest(metrics.REGISTRY).decode()
    for collector in collectors_of(Caches(NOWHERE, ())):
        exported += generate_latest(collector).decode()
    known = set(re.findall(r"^# TYPE (\S+) ", exported, re.MULTILINE))
    for rule in RULES:
        asked = re.findall(r"(?:streamgraft|metrics_apiserver)_\w+", rule["expr"])
        families = {re.sub(r"_(bucket|count)$", "", name) for name in asked}
        assert families <= known, rule["alert"]


def test_what_pods_of_users_say_silences_nothing() -> None:
    """They may export any series; Prometheus tells whose it is by `job`."""
    asked = re.compile(r"\b(?:streamgraft|metrics_apiserver)_\w+(?:\{[^}]*)?")
    for rule in RULES:
        for series in asked.findall(rule["expr"]):
            if not series.startswith("streamgraft_pe_"):
                adapters = re.match("metrics_|streamgraft_(adapter|region_signal)_", series)
                job = "streamgraft-metrics-adapter" if adapters else "streamgraft-operator"
                assert f'job="{job}"' in series, rule["alert"]


@pytest.mark.parametrize("reason", sorted(set(Reason) - NOT_ALERTED))
def test_every_reason_is_alerted(reason: Reason) -> None:
    asked = [match for rule in RULES for match in re.findall(r'reason=~?"([^"]+)"', rule["expr"])]
    assert any(reason in names.split("|") for names in asked)


def test_every_alert_is_tried_firing_and_silent() -> None:
    tests = yaml.safe_load(CASES.read_text())["tests"]
    tried = {
        (case["alertname"], bool(case["exp_alerts"]))
        for test in tests
        for case in test["alert_rule_test"]
    }
    assert tried == {(rule["alert"], fires) for rule in RULES for fires in (True, False)}


@pytest.mark.integration
def test_alerts_fire_when_they_should() -> None:
    passes(CASES)
