"""Test suites in the simulated cluster: replicas crash, answers are lost, pods are deleted."""

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.simulation.applications import NAMESPACE
from tests.simulation.fake_resources import FakeResource
from tests.simulation.fake_storage import Change
from tests.simulation.fake_tests import FakeTests
from tests.simulation.faults import compact, crash_operator
from tests.simulation.world import World

from streamgraft_common import names
from streamgraft_common.conditions import find
from streamgraft_common.kinds import CONFIG_MAP, POD
from streamgraft_common.resources import TEST_SUITE, SuiteStatus
from streamgraft_operator.test_suite import step as suite_step
from streamgraft_operator.test_suite.step import ENDED

SEEDS = range(24)
REST_SECONDS = 900.0
NEVER = 10_000.0
OVER = ("passed", "failed", "aborted")


class SuiteWorld:
    """A world with a suite, and what must hold of it."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        chance = self.world.chance
        weather = self.world.weather
        weather.latency = chance.choice([0.01, 0.5])
        for share in ("slow", "lost", "refused", "dropped", "repeated"):
            setattr(weather, share, chance.choice([0.0, 0.0, 0.1]))
        self.tests = [f"t{number}" for number in range(chance.randint(1, 9))]
        self.spec: dict[str, Any] = {
            "scenarios": [
                {
                    "name": name,
                    "command": ["true"],
                    "timeoutSeconds": chance.choice([5.0, NEVER, NEVER]),
                }
                for name in self.tests
            ],
            "concurrency": chance.randint(1, 4),
            "artifacts": chance.choice(["Keep", "KeepFailed", "Delete"]),
        }
        if chance.random() < 0.4:
            self.spec["failureThreshold"] = chance.randint(1, 3)
        self.played = FakeTests(self.world.loop, self.world.server, chance)
        self.deleted: set[str] = set()
        self.ended: dict[str, str] = {}
        self.uids: dict[str, str] = {}
        self.world.server.storage.observers.append(self._written)

    def status(self) -> SuiteStatus:
        """Return the suite's status."""
        item = self.world.get(TEST_SUITE, "suite")
        assert item is not None
        return SuiteStatus.model_validate(item.get("status") or {})

    def delete_pod(self) -> None:
        """Delete the pod of a test, as a user does."""
        pods = [
            pod for pod in self.world.objects(POD) if "deletionTimestamp" not in pod["metadata"]
        ]
        if pods:
            pod = self.world.chance.choice(pods)
            self.deleted.add(pod["metadata"]["labels"][names.LABEL_SCENARIO])
            self.world.request("DELETE", POD, pod["metadata"]["name"], {})

    def _written(self, resource: FakeResource, change: Change) -> None:
        if resource.plural == POD.plural and change.old is None:
            self._begun()
        if resource.plural != TEST_SUITE.plural or change.new is None:
            return
        status = SuiteStatus.model_validate(change.new.get("status") or {})
        lists = [name for state in ("pending", "running", *OVER) for name in getattr(status, state)]
        broken = self.world.invariants.broken
        if len(lists) != len(set(lists)) or not set(lists) <= set(self.tests):
            broken.append(f"a test is on several lists: {sorted(lists)}")
        if len(status.running) > change.new["spec"]["concurrency"]:
            broken.append(f"{status.running} run at a time")
        for state in OVER:
            for name in getattr(status, state):
                if self.ended.setdefault(name, state) != state:
                    broken.append(f"{name} was {self.ended[name]} and is {state}")
        for run in status.runs:
            if run.pod_uid and self.uids.setdefault(run.name, run.pod_uid) != run.pod_uid:
                broken.append(f"{run.name} runs in a second pod")

    def _begun(self) -> None:
        """Look that no test begins beside one that cleans up, unless so many may run."""
        there = [pod for pod in self.world.objects(POD) if pod["status"]["phase"] not in ENDED]
        if len(there) > self.spec["concurrency"]:
            self.world.invariants.broken.append(f"{len(there)} pods run at a time")


def played(seed: int) -> SuiteWorld:
    """Play a seed to its end."""
    suite = SuiteWorld(seed)
    world, chance = suite.world, suite.world.chance
    manifest = TEST_SUITE.manifest("suite", NAMESPACE, suite.spec)
    with world.surroundings():
        world.server.request("POST", TEST_SUITE.path(NAMESPACE), manifest, {}, "json")
        for _ in range(chance.choice([1, 2])):
            world.operators.start()
        faults: list[Callable[[], None]] = [
            lambda: crash_operator(world),
            lambda: compact(world),
            suite.delete_pod,
        ]
        for _ in range(chance.randint(0, 8)):
            world.run(chance.random() * 8)
            chance.choice(faults)()
        for network in (world.weather, *world.networks):
            network.calm()
        deadline = world.loop.time() + REST_SECONDS
        while suite.status().phase not in ("Passed", "Failed"):
            assert world.loop.time() < deadline, suite.status()
            world.run(5.0)
        world.run(120.0)
    return suite


@pytest.mark.parametrize("seed", SEEDS)
def test_every_test_runs_once_and_ends_as_its_pod_did(seed: int) -> None:
    suite = played(seed)
    status = suite.status()
    assert sorted(suite.ended) == sorted(suite.tests)
    phases = {name: suite.played.endings.get(uid) for name, uid in suite.uids.items()}
    assert all(phases[name] == "Succeeded" for name in status.passed)
    assert all(phases[name] == "Failed" for name in status.failed)
    seconds = {item["name"]: item["timeoutSeconds"] for item in suite.spec["scenarios"]}
    for name in status.aborted:
        begun = name in suite.uids
        assert not begun or name in suite.deleted or seconds[name] != NEVER
        assert begun or "failureThreshold" in suite.spec
    assert (status.phase == "Passed") == (not status.failed and not status.aborted)
    (results,) = (
        item
        for item in suite.world.objects(CONFIG_MAP)
        if item["metadata"]["name"] == names.junit_config_map("suite")
    )
    root = ElementTree.fromstring(results["data"]["junit.xml"].encode())
    assert root.attrib["tests"] == str(len(suite.tests))
    assert root.attrib["failures"] == str(len(status.failed))
    left = {
        pod["metadata"]["labels"][names.LABEL_SCENARIO]: pod["status"]["phase"]
        for pod in suite.world.objects(POD)
    }
    assert all(phase in ("Succeeded", "Failed") for phase in left.values())
    kept = {"Keep": set(suite.tests), "KeepFailed": {*status.failed, *status.aborted}}
    assert left.keys() <= kept.get(str(suite.spec["artifacts"]), set())


@pytest.mark.parametrize("seed", range(4))
def test_results_come_though_the_operator_was_long_away_behind_the_end(seed: int) -> None:
    """It ended right behind the status that says how the suite ended."""
    suite = SuiteWorld(seed)
    world = suite.world
    world.weather.calm()

    def end(resource: FakeResource, _: Change) -> None:
        if resource.plural == TEST_SUITE.plural and suite.status().phase in ("Passed", "Failed"):
            for one in [*world.operators.replicas]:
                one.process.steps_left = 0
                world.operators.replicas.remove(one)
                world.loop.later(0.0, one.process.kill)

    with world.surroundings():
        manifest = TEST_SUITE.manifest("suite", NAMESPACE, suite.spec)
        world.server.request("POST", TEST_SUITE.path(NAMESPACE), manifest, {}, "json")
        world.server.storage.observers.append(end)
        world.operators.start()
        while world.operators.replicas:
            world.run(5.0)
        world.run(400.0)
        assert world.get(CONFIG_MAP, names.junit_config_map("suite")) is None
        world.server.storage.observers.remove(end)
        world.operators.start()
        world.run(60.0)
        assert world.get(CONFIG_MAP, names.junit_config_map("suite"))


def test_an_edit_behind_the_end_runs_nothing_and_is_told() -> None:
    """Also when nobody looks at the suite any more for pods that come late."""
    suite = SuiteWorld(0)
    world = suite.world
    world.weather.calm()
    with world.surroundings():
        manifest = TEST_SUITE.manifest("suite", NAMESPACE, suite.spec)
        world.server.request("POST", TEST_SUITE.path(NAMESPACE), manifest, {}, "json")
        world.operators.start()
        while suite.status().phase not in ("Passed", "Failed"):
            world.run(5.0)
        world.run(400.0)
        before, pods = suite.status(), len(world.objects(POD))
        added = {"name": "added", "command": ["true"]}
        spec = {"scenarios": [*suite.spec["scenarios"], added]}
        world.request("PATCH", TEST_SUITE, "suite", {"spec": spec})
        world.run(60.0)
        after = suite.status()
        assert len(world.objects(POD)) == pods
        assert after.model_copy(update={"conditions": before.conditions}) == before
        accepted = find(after.conditions, "Accepted")
        assert accepted
        assert (accepted.status, accepted.reason) == ("False", "Ended")


def test_a_test_that_begins_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a planted fault: a pod that is gone is taken for one that was never made."""
    monkeypatch.setattr(suite_step, "_noted", lambda run, pod: run)

    def broken(seed: int) -> bool:
        try:
            suite = played(seed)
        except AssertionError:
            return True
        return bool(suite.deleted - set(suite.status().aborted))

    assert any(broken(seed) for seed in SEEDS)
