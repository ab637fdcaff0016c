"""A consistent region whose functions ask for cuts, and which goes back by itself."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from tests.e2e.test_committing_sinks import final
from tests.e2e.test_consistent_regions import PATIENCE_SECONDS, cut_after, status_of
from tests.sdk.counting import Streams
from typer.testing import CliRunner

from streamgraft.cli._app import app
from streamgraft_common.kinds import POD
from streamgraft_common.kube import KubeClient
from streamgraft_common.resources import PROCESSING_ELEMENT
from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

EACH = 200
APPLICATION = """
import json
from pathlib import Path

import streamgraft as sg

FOLDER = Path("{folder}")
app = sg.Application("counts", trigger_seconds=0.3)
records = app.kafka_source("records", topic="{source}", schema="key string")


def staged(what):
    return FOLDER / "staged" / what.writer / what.incarnation


@app.sink(inputs=records)
def files(rows, batch):
    keys = [row.key for row in rows.collect()]
    if not keys:
        return
    staged(batch).mkdir(parents=True, exist_ok=True)
    half = staged(batch) / f".{{int(batch)}}"
    half.write_text(json.dumps(keys))
    half.replace(staged(batch) / str(int(batch)))
    if (FOLDER / "enough").exists():
        app.request_cut("all")


@app.on_commit(files)
def publish(cut):
    for file in sorted(staged(cut).glob("[0-9]*")):
        if int(file.name) <= cut.last_batch:
            file.replace(FOLDER / "final" / f"{{cut.writer}}-{{cut.incarnation}}-{{file.name}}")


app.consistent_region("all", start=records, trigger="operatorDriven")
"""


def damage(checkpoints: Path) -> None:
    """Spoil the newest plan of a batch; the cut has another file of that name."""
    plans = [file for file in checkpoints.rglob("offsets/[0-9]*") if "savepoints" not in file.parts]
    newest = max(plans, key=lambda file: file.stat().st_mtime_ns)
    newest.unlink()
    newest.write_text("rubbish")


async def relaunch(kube: KubeClient, namespace: str) -> None:
    """Delete the pod of the only PE."""
    (pe,) = (await kube.get(PROCESSING_ELEMENT.path(namespace)))["items"]
    await kube.delete(POD.path(namespace, pe["status"]["pod"]))


async def test_a_region_with_a_damaged_checkpoint_goes_back_to_the_cut_that_a_function_asked_for(
    cluster: Cluster, kube: KubeClient, namespace: str, tmp_path: Path
) -> None:
    streams, file, folder = Streams(cluster, namespace), tmp_path / "counts.py", tmp_path / "files"
    (folder / "final").mkdir(parents=True)
    file.write_text(APPLICATION.format(source=streams.source, folder=folder))
    options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
    submit = [*options, "submit", str(file), "--wait"]
    result = await asyncio.to_thread(CliRunner().invoke, app, submit)
    assert result.exit_code == 0, result.output
    deadline = time.monotonic() + 3 * PATIENCE_SECONDS

    first = (await cut_after(kube, namespace, 0)).completed_sequence_id
    assert (await status_of(kube, namespace)).sequence_id == first, "nobody asked for another"
    (folder / "enough").touch()
    streams.send(EACH)
    while final(folder) != streams.sent:
        assert time.monotonic() < deadline, (final(folder), streams.sent)
        await asyncio.sleep(0.5)
    (folder / "enough").unlink()
    await cut_after(kube, namespace, first)

    streams.send(EACH)
    while sum(len(json.loads(item.read_text())) for item in put_aside(folder)) < EACH:
        assert time.monotonic() < deadline, list(put_aside(folder))
        await asyncio.sleep(0.5)
    damage(cluster.checkpoints / namespace)
    await relaunch(kube, namespace)
    while not (status := await status_of(kube, namespace)).completed_rollback_id:
        assert time.monotonic() < deadline, status
        await asyncio.sleep(0.2)

    (folder / "enough").touch()
    streams.send(EACH)
    while final(folder) != streams.sent:
        assert time.monotonic() < deadline, (final(folder), streams.sent)
        await asyncio.sleep(0.5)
    assert (await status_of(kube, namespace)).completed_rollback_id == 1


def put_aside(folder: Path) -> list[Path]:
    """Return what is not final yet."""
    return list((folder / "staged").glob("*/*/[0-9]*"))
