"""The pods of test suites."""

import json
from dataclasses import replace
from typing import Any

import pytest

from streamgraft_common.kube.client import Object
from streamgraft_common.resources import TEST_SUITE, SuiteSpec
from streamgraft_local.node.expansion import expand
from streamgraft_operator.manifests import PodForbidden, suite_pod
from streamgraft_operator.settings import Settings

SETTINGS = Settings(bootstrap_servers="k:9092", checkpoint_volume={}, image="streamgraft:1")


def made(template: dict[str, Any] | None = None, **fields: Any) -> Object:
    """Return the pod of a suite's only test."""
    scenario = {"name": "kills", "steps": [], **fields}
    spec = {"scenarios": [scenario], "podTemplate": template}
    suite = TEST_SUITE.manifest("nightly", "ns", spec, uid="u-1")
    parsed = SuiteSpec.model_validate(spec)
    return suite_pod(suite, parsed, parsed.scenarios[0], SETTINGS)


def test_a_scenario_goes_to_our_runner() -> None:
    pod = made(env={"WORD": "yes"}, nodeSelector={"disk": "ssd"})
    (container,) = pod["spec"]["containers"]
    variables = {item["name"]: item["value"] for item in container["env"]}
    assert pod["metadata"]["name"] == "nightly--kills"
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "u-1"
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert (container["image"], container["command"][-1]) == (
        "streamgraft:1",
        "streamgraft.scenarios",
    )
    assert (variables["WORD"], variables["STREAMGRAFT_NAMESPACE"]) == ("yes", "ns")
    assert json.loads(variables["STREAMGRAFT_SCENARIO"])["name"] == "kills"


def test_dollars_of_a_scenario_stay_as_they_are() -> None:
    """Kubernetes expands variables in the values of others."""
    command = ["sh", "-c", "mkdir /tmp/$$ $(WORD) $HOME"]
    pod = made(env={"WORD": 'say "yes"'}, steps=[{"run": command}])
    (container,) = pod["spec"]["containers"]
    variables: dict[str, str] = {}
    for item in container["env"]:
        variables[item["name"]] = expand(item["value"], variables)
    assert json.loads(variables["STREAMGRAFT_SCENARIO"])["steps"][0]["run"] == command


def test_a_pod_that_is_deleted_has_the_time_to_clean_up() -> None:
    """That of all steps; without any, the template's or Kubernetes' own."""
    clean_up = [{"sleepSeconds": 1, "timeoutSeconds": 0.5}, {"sleepSeconds": 1}]
    assert made(cleanUp=clean_up)["spec"]["terminationGracePeriodSeconds"] == 30 + 61
    assert "terminationGracePeriodSeconds" not in made()["spec"]
    own = {"spec": {"terminationGracePeriodSeconds": 5}}
    assert made(own)["spec"]["terminationGracePeriodSeconds"] == 5


def test_an_image_of_the_suite_wins() -> None:
    scenario = {"name": "kills", "steps": []}
    spec = SuiteSpec.model_validate({"scenarios": [scenario], "image": "mine:2"})
    suite = TEST_SUITE.manifest("nightly", "ns", spec, uid="u-1")
    pod = suite_pod(suite, spec, spec.scenarios[0], SETTINGS)
    assert pod["spec"]["containers"][0]["image"] == "mine:2"


def test_our_image_is_pulled_as_the_installation_says() -> None:
    suite = TEST_SUITE.manifest("nightly", "ns", {}, uid="u-1")
    spec = SuiteSpec.model_validate({"scenarios": [{"name": "kills", "steps": []}]})
    ours = replace(SETTINGS, image_pull_secrets=("registry",), image_pull_policy="Always")
    pod = suite_pod(suite, spec, spec.scenarios[0], ours)
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    own = {"spec": {"containers": [{"name": "test", "imagePullPolicy": "Never"}]}}
    spec = spec.model_copy(update={"pod_template": own})
    pod = suite_pod(suite, spec, spec.scenarios[0], ours)
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == "Never", "the template's own"


def test_a_template_adds_what_a_test_needs() -> None:
    resources = {"requests": {"cpu": "2"}}
    pod = made({"spec": {"containers": [{"name": "test", "resources": resources}]}})
    (container,) = pod["spec"]["containers"]
    assert container["resources"] == resources
    assert container["securityContext"]["allowPrivilegeEscalation"] is False


def test_a_template_gives_no_other_account() -> None:
    pod = made({"spec": {"serviceAccountName": "admin"}})
    assert pod["spec"]["serviceAccountName"] == "streamgraft-test"
    with pytest.raises(PodForbidden, match="hostNetwork"):
        made({"spec": {"hostNetwork": True}})
