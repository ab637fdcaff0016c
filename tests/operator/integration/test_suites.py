"""Test suites on the real API server; their pods run on the process node."""

from typing import Any
from xml.etree import ElementTree

import pytest
from tests.operator.integration.world import World, condition

from streamgraft_common import names
from streamgraft_common.kinds import CONFIG_MAP, POD, ROLE_BINDING, SERVICE_ACCOUNT
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import TEST_SUITE

pytestmark = pytest.mark.integration

SLEEPS = ["sh", "-c", "sleep 600"]


async def run(world: World, name: str, *scenarios: dict[str, Any], **spec: Any) -> None:
    """Create a suite."""
    manifest = TEST_SUITE.manifest(name, world.namespace, {"scenarios": list(scenarios), **spec})
    await world.client.create(TEST_SUITE.path(world.namespace), manifest)


async def ended(world: World, name: str) -> Object:
    """Wait until a suite has ended; return its status."""
    item = await world.eventually(
        TEST_SUITE, name, lambda item: item and (item.get("status") or {}).get("completedAt")
    )
    status: Object = item["status"]
    return status


async def allow_tests(world: World) -> None:
    """Create the account of tests, with its rights, as who runs suites does."""
    name = names.SERVICE_ACCOUNT_TEST
    await world.client.create(SERVICE_ACCOUNT.path(world.namespace), {"metadata": {"name": name}})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": world.namespace}
    binding = {
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": name,
        },
        "subjects": [subject],
    }
    await world.client.create(ROLE_BINDING.path(world.namespace), binding)


def _noted(item: Object, name: str) -> bool:
    """Return whether the operator knows the pod of a test: one that is gone before comes anew."""
    runs = (item.get("status") or {}).get("runs", [])
    return any(run["name"] == name and run.get("podUid") for run in runs)


@pytest.mark.usefixtures("operator")
async def test_tests_pass_fail_and_are_aborted(world: World) -> None:
    """The first waits for the account of tests, without which no pod can be created."""
    failing = {"name": "fails", "command": ["sh", "-c", "echo wrong >&2; exit 3"]}
    hanging = {"name": "hangs", "command": SLEEPS, "timeoutSeconds": 3}
    lost = {"name": "lost", "command": SLEEPS}
    passing = {
        "name": "passes",
        "command": ["sh", "-c", 'test "$WORD" = yes'],
        "env": {"WORD": "yes"},
    }
    await run(world, "all", passing, failing, hanging, lost, concurrency=4)
    await world.eventually(
        TEST_SUITE,
        "all",
        lambda item: condition(item or {}, "Ready").get("reason") == "PodRefused",
    )
    await allow_tests(world)
    await world.eventually(TEST_SUITE, "all", lambda item: _noted(item or {}, "lost"))
    await world.client.delete(POD.path(world.namespace, "all--lost"), gracePeriodSeconds="1")
    status = await ended(world, "all")
    assert (status["phase"], status["passed"], status["failed"]) == (
        "Failed",
        ["passes"],
        ["fails"],
    )
    assert sorted(status["aborted"]) == ["hangs", "lost"]
    messages = {item["name"]: item.get("message") for item in status["runs"]}
    assert messages["fails"] == "exit code 3: wrong"
    assert messages["lost"] == "its pod was deleted"
    assert "did not end within 3 s" in messages["hangs"]
    results = await world.eventually(CONFIG_MAP, "all-junit", lambda item: item)
    root = ElementTree.fromstring(results["data"]["junit.xml"].encode())
    assert (root.attrib["tests"], root.attrib["errors"]) == ("4", "2")
    await world.eventually(POD, "all--hangs", lambda item: item is None)
    assert await world.names(POD, f"{names.LABEL_TEST_SUITE}=all") == ["all--fails"]


@pytest.mark.long
@pytest.mark.usefixtures("operator")
async def test_steps_are_taken_and_the_threshold_aborts_the_rest(world: World) -> None:
    """Our own runner: objects are applied, patched, waited for, killed, and cleaned up."""
    await allow_tests(world)
    pool = {
        "apiVersion": TEST_SUITE.api_version,
        "kind": "HostPool",
        "metadata": {"name": "pool"},
        "spec": {"tags": ["none"]},
    }
    target = {"kind": "HostPool", "name": "pool"}
    ready = {**target, "field": "status.conditions[type=Ready].reason", "equals": "NoNodes"}
    pod = {"apiVersion": "v1", "kind": "Pod"}
    victim = f"{names.LABEL_SCENARIO}=victim"
    works = {
        "name": "works",
        "steps": [
            {"apply": pool},
            {"patch": {**target, "patch": {"spec": {"tags": ["other"]}}}},
            {"wait": ready},
            {"wait": {**pod, "name": "it--victim", "equals": "Running"}},
            {"kill": {"selector": victim}},
            {"run": ["true"]},
            # It runs until the threshold is reached, so there is no place for the last one.
            {"wait": {**pod, "name": "it--wrong", "equals": "Failed"}},
        ],
        "cleanUp": [{"delete": target}, {"wait": {**target, "absent": True}}],
    }
    wrong = {
        "name": "wrong",
        "steps": [
            {"sleepSeconds": 0.1},
            {"wait": {**target, "name": "other"}, "timeoutSeconds": 0.5},
        ],
    }
    victim_of_it = {"name": "victim", "command": SLEEPS}
    never = {"name": "never", "command": ["true"]}
    scenarios = works, victim_of_it, wrong, never
    await run(world, "it", *scenarios, concurrency=2, failureThreshold=2, artifacts="Keep")
    status = await ended(world, "it")
    assert (status["passed"], status["failed"]) == (["works"], ["wrong"])
    assert status["aborted"] == ["victim", "never"]
    messages = {item["name"]: item.get("message") for item in status["runs"]}
    assert messages["wrong"].endswith(
        "FAILED: step 2 (wait for HostPool other status.phase = anything)"
        " was not done within 0.5 s: it is absent"
    )
    assert await world.client.find(f"{POD.path(world.namespace)}/it--works")
