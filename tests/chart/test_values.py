"""The values of the Helm chart: what each of them changes."""

import pytest
import yaml
from tests.chart.helm import bare, rendered
from tests.chart.test_chart import OWN, named

pytestmark = pytest.mark.integration


def test_the_runbook_is_where_the_installation_has_it() -> None:
    """Alerts are read far from a checkout."""
    page = "https://docs.example/runbook"
    items = bare(*OWN, "--set", "monitors.enabled=true", "--set", f"alerts.runbookUrl={page}")
    own = named(items, "ConfigMap")["streamgraft-prometheus"]["data"]["streamgraft.yaml"]
    for found in (named(items, "PrometheusRule")["streamgraft"]["spec"], yaml.safe_load(own)):
        (first, *_) = found["groups"][0]["rules"]
        assert first["annotations"]["runbook_url"] == f"{page}#{first['alert'].lower()}"
