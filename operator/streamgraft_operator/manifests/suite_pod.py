"""What a TestSuite consists of: the pod of each test, and the ConfigMap with the results."""

import math
from typing import Any

from streamgraft_common import names
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import PodSettings, Scenario, SuiteSpec
from streamgraft_operator.manifests import pod_security, pod_settings
from streamgraft_operator.manifests.metadata import owner_reference
from streamgraft_operator.manifests.template import merged
from streamgraft_operator.settings import Settings

CONTAINER = "test"
JUNIT_KEY = "junit.xml"
RUNNER = ["python", "-m", "streamgraft.scenarios"]
ENDING_SECONDS = 30
"""In which our runner ends the step that it is at, and itself."""


@pod_security.well_formed()
def suite_pod(
    suite: Object, spec: SuiteSpec, scenario: Scenario, settings: Settings
) -> dict[str, Any]:
    """Return the pod of a test. Raises PodForbidden if the template asks for too much."""
    pod_security.check(PodSettings(pod_template=spec.pod_template), settings.pod_security)
    metadata = suite["metadata"]
    environment = {
        **scenario.env,
        "STREAMGRAFT_NAMESPACE": metadata["namespace"],
        "STREAMGRAFT_SCENARIO": scenario.as_variable(),
    }
    container = {
        "name": CONTAINER,
        **pod_settings.image(spec.image, settings),
        "command": scenario.command or RUNNER,
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    ours = {
        "metadata": {
            "labels": {
                names.LABEL_TEST_SUITE: metadata["name"],
                names.LABEL_SCENARIO: scenario.name,
            }
        },
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": names.SERVICE_ACCOUNT_TEST,
            "enableServiceLinks": False,
            "nodeSelector": scenario.node_selector,
            **pod_settings.image_pull_secrets(settings),
            "containers": [container],
            **_grace(scenario),
        },
    }
    template = merged(spec.pod_template or {}, ours)
    filled = pod_settings.with_pull_policy(template["spec"], settings)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **template["metadata"],
            "name": names.suite_pod_name(metadata["name"], scenario.name),
            "namespace": metadata["namespace"],
            "ownerReferences": [_owned_by(suite)],
        },
        "spec": pod_security.with_defaults(filled),
    }


def junit_config_map(suite: Object, xml: str) -> dict[str, Any]:
    """Return the ConfigMap with the results of a suite."""
    metadata = suite["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.junit_config_map(metadata["name"]),
            "namespace": metadata["namespace"],
            "labels": {names.LABEL_TEST_SUITE: metadata["name"]},
            "ownerReferences": [_owned_by(suite)],
        },
        "data": {JUNIT_KEY: xml},
    }


def _grace(scenario: Scenario) -> dict[str, Any]:
    """Return the grace period in which a pod that is deleted can clean up."""
    if not scenario.clean_up:
        return {}
    seconds = sum(step.timeout_seconds for step in scenario.clean_up)
    return {"terminationGracePeriodSeconds": ENDING_SECONDS + math.ceil(seconds)}


def _owned_by(suite: Object) -> dict[str, Any]:
    metadata = suite["metadata"]
    return owner_reference(suite["kind"], metadata["name"], metadata["uid"])
