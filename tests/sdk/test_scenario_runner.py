"""The runner of scenarios: what it does when it is to end, and when the API server is away."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamgraft.scenarios.runner import Runner
from streamgraft_common.kube import (
    ApiError,
    Conflict,
    KubeClient,
    KubeConfig,
    NotFound,
    Unreachable,
)
from streamgraft_common.kube.client import Object
from streamgraft_common.resources import Scenario, SuiteSpec

JOB = {"kind": "Job", "name": "counting", "equals": "Healthy"}
SERVED = {"resources": [{"name": "jobs", "kind": "Job"}]}
HEALTHY = {"status": {"phase": "Healthy"}}
ROOT = Path(__file__).parents[2]


class CannedClient(KubeClient):
    """Gives one answer after the other, the last one again and again; exceptions are raised."""

    def __init__(self, *answers: Object | Exception) -> None:
        super().__init__(KubeConfig("http://127.0.0.1:1"))
        self.answers = list(answers)

    async def get(self, path: str, **query: str) -> Object:
        """Return the next answer."""
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


async def problems(*answers: Object | Exception, within: float = 30, **probe: Any) -> list[str]:
    """Return what fails in a scenario that waits for a job."""
    step = {"wait": {**JOB, **probe}, "timeoutSeconds": within}
    scenario = Scenario.model_validate({"name": "waits", "steps": [step]})
    runner = Runner(CannedClient(*answers), "ns", lambda line: None)
    return await runner.run(scenario, asyncio.Event())


@pytest.mark.parametrize("away", [Unreachable("refused"), ApiError(503, "Busy", "no leader")])
async def test_a_wait_goes_on_without_an_answer(away: Exception) -> None:
    assert await problems(away, SERVED, away, HEALTHY) == []


async def test_a_moment_without_an_answer_is_a_break() -> None:
    """What was not seen does not count for `forSeconds`."""
    began = time.monotonic()
    answers = SERVED, HEALTHY, HEALTHY, Unreachable("refused"), HEALTHY
    assert await problems(*answers, forSeconds=0.6) == []
    assert time.monotonic() - began >= 0.75 + 0.6


async def test_the_last_look_is_told() -> None:
    (found,) = await problems(SERVED, Unreachable("no answer from the API server"), within=2)
    assert found.endswith("was not done within 2 s: no answer from the API server")


async def test_a_refusal_is_final() -> None:
    (found,) = await problems(SERVED, ApiError(403, "Forbidden", "not allowed"))
    assert found.endswith("403 Forbidden: not allowed")


class ClientOfPods(CannedClient):
    """Has two pods that run; what is to be deleted is refused first, and gone then."""

    def __init__(self, *refusals: Exception) -> None:
        super().__init__({})
        self.pods = {name: {"name": name, "uid": f"{name}-1"} for name in ("a", "b")}
        self.refusals = list(refusals)
        self.deleted: list[str] = []

    async def request(self, method: str, path: str, **more: Any) -> Object:
        """List, find or delete pods."""
        name = path.rpartition("/")[2]
        if self.refusals and (method == "DELETE" or name != "pods"):
            raise self.refusals.pop(0)
        if name == "pods":
            return {"metadata": {}, "items": [self.pod(name) for name in self.pods]}
        if method == "DELETE":
            self.deleted.append(more["body"]["preconditions"]["uid"])
            del self.pods[name]
        elif name not in self.pods:
            raise NotFound(404, "NotFound", name)
        return self.pod(name) if name in self.pods else {}

    async def get(self, path: str, **query: str) -> Object:
        """Find a pod."""
        return await self.request("GET", path)

    def pod(self, name: str) -> Object:
        """Return a pod that runs."""
        return {"metadata": self.pods[name], "status": {"phase": "Running"}}


async def killing(client: ClientOfPods) -> list[str]:
    """Return what fails in a scenario that kills both pods."""
    step = {"kill": {"selector": "app=x", "count": 2, "seed": 1}, "timeoutSeconds": 5}
    scenario = Scenario.model_validate({"name": "kills", "steps": [step]})
    return await Runner(client, "ns", lambda line: None).run(scenario, asyncio.Event())


@pytest.mark.parametrize("away", [Unreachable("refused"), ApiError(503, "Busy", "no leader")])
async def test_a_kill_goes_on_without_an_answer(away: Exception) -> None:
    client = ClientOfPods(away, away)
    assert await killing(client) == []
    assert sorted(client.deleted) == ["a-1", "b-1"]


@pytest.mark.parametrize("gone", [NotFound(404, "NotFound", "a"), Conflict(409, "Conflict", "a")])
async def test_a_pod_that_is_gone_before_its_kill_or_is_another_one_by_now_is_no_failure(
    gone: Exception,
) -> None:
    client = ClientOfPods(gone)
    first = next(iter(random.Random(1).sample(["a", "b"], 2)))

    async def killed() -> None:
        while client.refusals:
            await asyncio.sleep(0)
        client.pods[first] = {"name": first, "uid": f"{first}-2"}

    assert (await asyncio.gather(killing(client), killed()))[0] == []
    assert client.pods == {first: {"name": first, "uid": f"{first}-2"}}


async def test_a_kill_that_is_forbidden_fails() -> None:
    (found,) = await killing(ClientOfPods(ApiError(403, "Forbidden", "not allowed")))
    assert found.endswith("403 Forbidden: not allowed")


async def test_who_is_to_end_before_it_began_cleans_up() -> None:
    lines: list[str] = []
    steps = {"steps": [{"sleepSeconds": 60}], "cleanUp": [{"sleepSeconds": 0}]}
    scenario = Scenario.model_validate({"name": "late", **steps})
    ending = asyncio.Event()
    ending.set()
    found = await Runner(CannedClient({}), "ns", lines.append).run(scenario, ending)
    assert found == ["the test was to end before its steps were done"]
    assert lines[-1].startswith("clean-up 1 (sleep 0 s): done")


def test_a_pod_that_is_deleted_cleans_up(tmp_path: Path) -> None:
    """SIGTERM ends the steps with the command that runs; the clean-up follows."""
    began, cleaned, pid = (tmp_path / name for name in ("began", "cleaned", "pid"))
    waits = f"echo $$ > {pid}; touch {began}; exec sleep 600"
    scenario = {
        "name": "hangs",
        "steps": [{"run": ["sh", "-c", waits]}, {"run": ["touch", str(tmp_path / "never")]}],
        "cleanUp": [{"run": ["touch", str(cleaned)]}],
    }
    config = tmp_path / "config"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    config.write_text(
        yaml.safe_dump(
            {
                "clusters": [cluster],
                "contexts": [context],
                "users": [{"name": "u", "user": {}}],
                "current-context": "c",
            }
        )
    )
    environment = {
        **os.environ,
        "KUBECONFIG": str(config),
        "STREAMGRAFT_NAMESPACE": "ns",
        "STREAMGRAFT_SCENARIO": json.dumps(scenario),
    }
    command = [sys.executable, "-m", "streamgraft.scenarios"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 240
            while not began.exists():
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 1
    assert cleaned.exists()
    assert not (tmp_path / "never").exists()
    assert output.splitlines()[0].endswith("was cut off")
    assert output.splitlines()[-1] == "FAILED: the test was to end before its steps were done"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def suites() -> list[Any]:
    """Return the suites of the documentation and of the examples."""
    page = (ROOT / "docs" / "use" / "test-suites.md").read_text()
    shown = page.partition("```yaml\n")[2].partition("```")[0]
    return [shown, *(file.read_text() for file in ROOT.glob("examples/*/suite.yaml"))]


@pytest.mark.parametrize("text", suites())
def test_examples_give_their_steps_the_time_that_these_may_take(text: str) -> None:
    """Else a slow step is never told: the whole test is aborted before."""
    for scenario in SuiteSpec.model_validate(yaml.safe_load(text)["spec"]).scenarios:
        steps = [*(scenario.steps or []), *scenario.clean_up]
        assert scenario.timeout_seconds > sum(step.timeout_seconds for step in steps)
