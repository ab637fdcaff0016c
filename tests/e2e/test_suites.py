"""docs/use/test-suites.md: its suite and its command, on an application that `init` makes."""

import asyncio
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.operator.integration.test_suites import allow_tests
from tests.operator.integration.world import World
from typer.testing import CliRunner

from streamgraft.cli._app import app
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

PAGE = Path(__file__).parents[2] / "docs" / "use" / "test-suites.md"


def block(language: str) -> str:
    """Return the page's only block of code in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return str(found)


async def _allow(cluster: Cluster, namespace: str) -> None:
    async with KubeClient(load_config(cluster.kubeconfig)) as client:
        await allow_tests(World(client, namespace))


def test_a_job_survives_a_kill_and_scales(
    cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(_allow(cluster, namespace))
    made = CliRunner().invoke(app, ["init", str(tmp_path / "counting")])
    assert made.exit_code == 0, made.output
    monkeypatch.chdir(tmp_path / "counting")
    Path("suite.yaml").write_text(block("yaml"))
    program, *command = shlex.split(block("sh"))
    assert program == "streamgraft"
    options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
    result = CliRunner().invoke(app, [*options, *command])
    assert result.exit_code == 0, result.output
    assert "survives-a-kill-and-scales passed after" in result.output
    root = ElementTree.parse("results.xml").getroot()
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == ("2", "0", "0")


def test_connection_of_two_jobs_outlasts_kills(cluster: Cluster, namespace: str) -> None:
    """The suite of an example; its bundles outlast a job that it deletes and submits again."""
    asyncio.run(_allow(cluster, namespace))
    place = Path(__file__).parents[2] / "examples" / "shared_stream"
    options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
    bundles = [part for name in ("ingest", "totals") for part in ("--bundle", f"{place}/{name}.py")]
    result = CliRunner().invoke(app, [*options, "suite", f"{place}/suite.yaml", *bundles])
    assert result.exit_code == 0, result.output
    assert "connection-outlasts-kills passed after" in result.output
