"""The command line against the real API server."""

import asyncio
import base64
import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner, Result

from streamgraft._builder import build_bundle
from streamgraft.cli._app import app
from streamgraft.cli._submit import EXIT_SOURCES_MISSING
from streamgraft_common import names
from streamgraft_common.bundle import ADL_FILE
from streamgraft_common.kube import KubeClient, NotFound, load_config
from streamgraft_common.resources import JOB, PARALLEL_REGION
from streamgraft_local import Cluster

pytestmark = pytest.mark.integration

EXAMPLE = Path(__file__).parents[2] / "examples" / "wordcount" / "app.py"


class CommandLine:
    """The command line, pointed at the test's cluster and namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]

    def run(self, *arguments: str | Path) -> Result:
        """Run a command."""
        wide = {"COLUMNS": "200"}  # no cell of a table is folded
        return CliRunner().invoke(app, [*self._options, *map(str, arguments)], env=wide)

    def succeed(self, *arguments: str | Path) -> str:
        """Run a command that has to succeed, and return what it prints."""
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def fail(self, *arguments: str | Path, code: int = 1) -> str:
        """Run a command that has to fail as expected, and return what it tells."""
        result = self.run(*arguments)
        assert result.exit_code == code, result.output
        assert result.stderr.startswith("error: ")
        return result.stderr


@pytest.fixture
def command(cluster: Cluster, namespace: str) -> CommandLine:
    """The command line for the test's namespace."""
    return CommandLine(cluster, namespace)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the word count."""
    file = tmp_path_factory.mktemp("bundle") / "wordcount.zip"
    file.write_bytes(build_bundle(EXAMPLE).data)
    return file


def find(cluster: Cluster, path: str) -> dict[str, Any] | None:
    """Return an object, or None."""

    async def get() -> dict[str, Any] | None:
        async with KubeClient(load_config(cluster.kubeconfig)) as client:
            try:
                return await client.get(path)
            except NotFound:
                return None

    return asyncio.run(get())


def create(cluster: Cluster, path: str, body: dict[str, Any]) -> None:
    """Create an object."""

    async def post() -> None:
        async with KubeClient(load_config(cluster.kubeconfig)) as client:
            await client.create(path, body)

    asyncio.run(post())


def until_submitted(cluster: Cluster, namespace: str, job: str) -> None:
    """Wait until all resources of a job exist."""
    deadline = time.monotonic() + 60
    while True:
        item = find(cluster, JOB.path(namespace, job))
        if item and (item.get("status") or {}).get("phase") == "Submitted":
            return
        assert time.monotonic() < deadline, item
        time.sleep(0.1)


def test_submit_may_be_repeated_and_cancel_removes_all(
    cluster: Cluster, namespace: str, command: CommandLine, bundle: Path
) -> None:
    """A second submit of the same changes nothing; cancel takes the job and its bundle away."""
    arguments: list[str | Path] = ["submit", bundle, "--name", "mine", "--param", "shortest-word=5"]
    job_path = JOB.path(namespace, "mine")
    config_map_path = f"/api/v1/namespaces/{namespace}/configmaps/mine-bundle"

    said = f"Job mine submitted to namespace {namespace} of context "
    assert command.succeed(*arguments).startswith(said)
    job, config_map = find(cluster, job_path), find(cluster, config_map_path)
    assert job
    assert config_map
    assert job["spec"]["parameters"] == {"shortest-word": "5"}
    assert job["spec"]["bundle"]["configMap"]["name"] == "mine-bundle"
    assert base64.b64decode(config_map["binaryData"]["bundle.zip"]) == bundle.read_bytes()
    assert config_map["metadata"]["labels"] == {names.LABEL_JOB: "mine"}

    command.succeed(*arguments)
    again, same_map = find(cluster, job_path), find(cluster, config_map_path)
    assert again
    assert same_map
    assert again["metadata"]["uid"] == job["metadata"]["uid"]
    assert again["metadata"]["generation"] == job["metadata"]["generation"]
    first, second = (
        item["metadata"]["annotations"][names.ANNOTATION_SUBMITTED] for item in (job, again)
    )
    assert first < second
    assert same_map["metadata"]["resourceVersion"] == config_map["metadata"]["resourceVersion"]

    *ending, gone = command.succeed("cancel", "mine").splitlines()
    assert "ends: its pods stop" in ending[0]
    assert gone == "Job mine is gone"
    assert find(cluster, job_path) is None
    assert find(cluster, config_map_path) is None
    assert "There is no job mine" in command.succeed("cancel", "mine")


def test_submit_removes_what_is_no_longer_asked_for(
    cluster: Cluster, namespace: str, command: CommandLine, bundle: Path
) -> None:
    """Without --param the application's default is back, without --image the operator's."""
    asked = ("--param", "shortest-word=5", "--width", "counting=2", "--image", "registry/mine:1")
    command.succeed("submit", bundle, *asked)
    job = find(cluster, JOB.path(namespace, "wordcount"))
    assert job
    assert job["spec"]["image"] == "registry/mine:1"
    command.succeed("submit", bundle)
    job = find(cluster, JOB.path(namespace, "wordcount"))
    assert job
    assert set(job["spec"]) == {"bundle"}
    command.succeed("cancel", "wordcount")


def described(bundle: Path, operator: str, **changes: Any) -> Path:
    """Return a copy of a bundle whose description has other fields of an operator."""
    other = bundle.with_name("other.zip")
    with zipfile.ZipFile(bundle) as old, zipfile.ZipFile(other, "w") as new:
        adl = json.loads(old.read(ADL_FILE))
        (found,) = [item for item in adl["operators"] if item["name"] == operator]
        found.update(changes)
        for name in old.namelist():
            new.writestr(name, old.read(name) if name != ADL_FILE else json.dumps(adl))
    return other


def test_submit_that_does_not_become_healthy_in_time(
    namespace: str, command: CommandLine, bundle: Path
) -> None:
    """Waiting ends with an error that says that the source topic is missing; the job stays."""
    missing = described(bundle, "lines", kafka={"topic": f"{namespace}-lines"})
    answer = command.fail("submit", missing, "--wait", "--timeout", "10", code=EXIT_SOURCES_MISSING)
    assert "is not healthy after 10 s" in answer
    assert "wordcount" in command.succeed("watch", "--once")
    command.succeed("cancel", "wordcount")


def test_what_does_not_exist(
    cluster: Cluster, namespace: str, command: CommandLine, bundle: Path
) -> None:
    """Each message names what is missing."""
    here = f"namespace {namespace} of context {load_config(cluster.kubeconfig).context}"
    assert f"job a in {here} has no region b" in command.fail("scale", "a", "b", "2")
    assert f"job a has no pods in {here}" in command.fail("logs", "a")
    assert "processing element 3 of job a has no pods" in command.fail("logs", "a", "3")
    assert f"no job a is submitted in namespace {namespace}" in command.fail("ports", "a")
    assert '"nowhere" not found' in command.fail("submit", bundle, "-n", "nowhere")


async def test_a_width_that_is_overruled_is_no_longer_awaited(
    kube: KubeClient, namespace: str, command: CommandLine
) -> None:
    """As by an autoscaler: the width would be awaited for ever."""
    path = PARALLEL_REGION.path(namespace)
    spec = {"job": "j", "region": "r", "width": 1, "maxWidth": 4, "key": ["k"]}
    await kube.create(path, PARALLEL_REGION.manifest("j-r", namespace, spec))
    waiting = asyncio.create_task(
        asyncio.to_thread(command.fail, "scale", "j", "r", "2", "--wait", "--timeout", "3600")
    )
    async with asyncio.timeout(240):
        while (await kube.get(f"{path}/j-r"))["spec"]["width"] != 2:
            await asyncio.sleep(0.05)
    await kube.patch(f"{path}/j-r/scale", {"spec": {"replicas": 3}})
    output = await waiting
    assert "width 3 of region r was set in the meantime, so 2 is no longer awaited" in output
    assert "streamgraft explain region j-r" in output
    await kube.delete(f"{path}/j-r")


def test_cancelling_in_another_namespace_leaves_ours(
    cluster: Cluster, namespace: str, command: CommandLine, bundle: Path
) -> None:
    """The namespace of a command beats the global one."""
    command.succeed("submit", bundle)
    command.succeed("cancel", "wordcount", "-n", "default")
    assert find(cluster, JOB.path(namespace, "wordcount"))
    command.succeed("cancel", "wordcount")


def submit_unplaceable(
    cluster: Cluster, namespace: str, command: CommandLine, bundle: Path
) -> None:
    """Submit the word count with PEs that no node has room for; wait until all resources exist."""
    servers = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in servers.create_topics([NewTopic("lines", 1, 1)]).values():
        future.exception()  # another test may have made it
    unplaceable = {"resources": {"requests": {"cpu": "1000"}}}
    body = JOB.manifest("wordcount", namespace, {"processingElement": unplaceable})
    body["spec"]["bundle"] = {"configMap": {"name": "wordcount-bundle"}}
    create(cluster, JOB.path(namespace), body)
    command.succeed("submit", bundle)
    until_submitted(cluster, namespace, "wordcount")


def test_ports_of_a_job_that_is_submitted(
    cluster: Cluster, namespace: str, command: CommandLine, bundle: Path
) -> None:
    """A label leads to a topic and a PE, a PE to an address."""
    submit_unplaceable(cluster, namespace, command, bundle)
    shown = command.succeed("ports", "wordcount", "counts").split()
    assert shown[shown.index("counts[0].0") :][:4] == [
        "counts[0].0",
        f"{namespace}.wordcount.words.counting",
        "wordcount-3",
        f"http://wordcount-3.{namespace}.svc:10000",
    ]
    assert "no operator words of job wordcount" in command.fail("ports", "wordcount", "words")
    command.succeed("cancel", "wordcount")


def test_programs_can_read_what_is_shown(
    cluster: Cluster, namespace: str, command: CommandLine, bundle: Path
) -> None:
    """Also as kubectl runs its plugins."""
    submit_unplaceable(cluster, namespace, command, bundle)
    seen = json.loads(command.succeed("watch", "-o", "json"))
    assert [item["metadata"]["name"] for item in seen["jobs"]] == ["wordcount"]
    loads = json.loads(command.succeed("top", "wordcount", "-o", "json"))
    assert {load["stage"] for load in loads} >= {"counts", "lines"}
    plugin = Path(sys.executable).with_name("kubectl-streamgraft")
    arguments = ["--kubeconfig", str(cluster.kubeconfig), "doctor", "-o", "json"]
    result = subprocess.run([plugin, *arguments], capture_output=True, text=True)
    found = {check["name"]: check for check in json.loads(result.stdout)}
    for name in ("Kubernetes", "Resource definitions", "Operator", "custom.metrics.k8s.io"):
        assert found[name]["state"] == "good", found
    assert found["Your rights"]["state"] == "good"


def test_commands_print_what_came_of_them(
    cluster: Cluster, namespace: str, command: CommandLine, bundle: Path
) -> None:
    """One document on stdout, the lines on stderr."""
    program = Path(sys.executable).with_name("streamgraft")
    target = (str(program), "--kubeconfig", str(cluster.kubeconfig), "-n", namespace)

    def printed(*arguments: str | Path) -> dict[str, Any]:
        result = subprocess.run(
            [*target, *arguments, "-o", "json"], capture_output=True, text=True, check=True
        )
        assert "ob wordcount" in result.stderr
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    submit_unplaceable(cluster, namespace, command, bundle)
    job = printed("submit", bundle)
    assert (job["kind"], job["metadata"]["name"]) == ("Job", "wordcount")
    assert "managedFields" not in job["metadata"]
    region = printed("scale", "wordcount", "counting", "2")
    assert (region["kind"], region["spec"]["width"]) == ("ParallelRegion", 2)
    gone = printed("cancel", "wordcount")
    assert gone == {"job": "wordcount", "namespace": namespace, "existed": True}


def test_plan_tells_what_is_free(command: CommandLine, bundle: Path) -> None:
    """As soon as the node has been measured, which takes two looks at it."""
    deadline = time.monotonic() + 60
    while (cpu := json.loads(command.succeed("plan", bundle, "-o", "json"))["cpu"]) is None:
        assert time.monotonic() < deadline
    assert cpu["nodes"] == os.cpu_count()
    assert 0 <= cpu["free"] <= cpu["nodes"]
    assert cpu["job"] is None
    assert "Measured: " in command.succeed("plan", bundle)


def test_plan_compares_with_what_runs(
    cluster: Cluster, namespace: str, command: CommandLine, bundle: Path
) -> None:
    """Nothing is submitted by it; code concerns who uses it, parameters all."""
    assert "it would be new" in command.succeed("plan", bundle)
    assert find(cluster, JOB.path(namespace, "wordcount")) is None

    submit_unplaceable(cluster, namespace, command, bundle)
    same = command.succeed("plan", bundle)
    assert "0 restart" in same
    assert "Nothing that runs would be restarted." in same
    assert "in place: parameters" in command.succeed("plan", bundle, "--param", "shortest-word=5")
    other = described(bundle, "counts", code="other")
    with zipfile.ZipFile(other, "a") as archive:
        archive.writestr("more.py", "")
    document = json.loads(command.succeed("plan", other, "--output", "json"))
    assert document["compared"]
    changes = {pe["stage"]: (pe["change"], pe["differing"]) for pe in document["pes"]}
    assert changes.pop("counts") == ("in place", ["code"])
    assert set(map(repr, changes.values())) == {repr(("identical", []))}
    command.succeed("cancel", "wordcount")
