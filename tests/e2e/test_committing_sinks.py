"""A sink function that commits with cuts: exact, whatever dies, and when its region goes back."""

import asyncio
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.e2e.test_consistent_regions import PATIENCE_SECONDS, cut_after, status_of
from tests.sdk.counting import Streams
from typer.testing import CliRunner

from streamgraft.cli._app import app
from streamgraft_common.kube import KubeClient
from streamgraft_common.resources import CONSISTENT_REGION, PROCESSING_ELEMENT, SAVEPOINT
from streamgraft_local import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long]

APPLICATION = '''
import json
import os
import signal
import urllib.request
from pathlib import Path

import streamgraft as sg

FOLDER = Path("{folder}")
SERVICE = "{service}"
app = sg.Application("counts", trigger_seconds=0.3)
records = app.kafka_source("records", topic="{source}", schema="key string")


def dies_once(moment):
    """Kill the process, the first time."""
    try:
        (FOLDER / moment).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def staged(what):
    return FOLDER / "staged" / what.writer / what.incarnation


with app.parallel("work", key=["key"], width=1, max_width=2):

    @app.sink(inputs=records)
    def files(rows, batch):
        keys = [row.key for row in rows.collect()]
        if not keys:
            return
        staged(batch).mkdir(parents=True, exist_ok=True)
        half = staged(batch) / f".{{int(batch)}}"
        half.write_text(json.dumps(keys))
        half.replace(staged(batch) / str(int(batch)))
        dies_once("written")


@app.on_prepare(files)
def look(cut):
    if (FOLDER / "written").exists() and cut.number:
        dies_once("prepared")


def make_final(file, name):
    if SERVICE:
        url = f"{{SERVICE}}/{{name}}"
        request = urllib.request.Request(url, data=file.read_bytes(), method="PUT")
        urllib.request.urlopen(request, timeout=10).close()
    else:
        file.replace(FOLDER / "final" / name)
    if (FOLDER / "prepared").exists():
        dies_once("committed")
    file.unlink(missing_ok=True)


@app.on_commit(files)
def publish(cut):
    for file in sorted(staged(cut).glob("[0-9]*")):
        if int(file.name) <= cut.last_batch:
            make_final(file, f"{{cut.writer}}-{{cut.incarnation}}-{{file.name}}")


app.consistent_region("all", start=records, period_seconds=2, retained_cuts=2)
'''


def final(folder: Path) -> Counter[str]:
    """Return how often each key is in what is final."""
    found: Counter[str] = Counter()
    for file in (folder / "final").glob("[!.]*"):
        found.update(json.loads(file.read_text()))
    return found


async def _goes_back(kube: KubeClient, namespace: str, streams: Streams) -> None:
    """Have the region go back to its last cut, with records that came since."""
    streams.send(200)
    await asyncio.sleep(1.0)
    path, patch = CONSISTENT_REGION.path(namespace, "counts-all"), {"rollbackRequested": 1}
    await kube.patch(path, {"spec": patch})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (status := await status_of(kube, namespace)).completed_rollback_id:
        assert time.monotonic() < deadline, status
        await asyncio.sleep(0.2)
    streams.send(200)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where batches are put aside, and what is final is."""
    (tmp_path / "files" / "final").mkdir(parents=True)
    return tmp_path / "files"


@pytest.fixture(params=["files", "service"])
def service(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """The URL of a service that keeps what is put there under a name, or '' for files."""
    if request.param == "files":
        yield ""
        return

    class Keeper(BaseHTTPRequestHandler):
        """Keeps what comes, however often."""

        def do_PUT(self) -> None:
            """Take it."""
            half = folder / "final" / f".{uuid.uuid4().hex}"
            half.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
            half.replace(folder / "final" / Path(self.path).name)
            self.send_response(204)
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Keeper) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def test_what_it_writes_is_final_once_though_its_process_dies_and_it_is_rolled_back(
    cluster: Cluster, kube: KubeClient, namespace: str, tmp_path: Path, folder: Path, service: str
) -> None:
    streams, file = Streams(cluster, namespace), tmp_path / "counts.py"
    text = APPLICATION.format(source=streams.source, folder=folder, service=service)
    file.write_text(text)
    options = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
    submit = [*options, "submit", str(file), "--wait"]
    result = await asyncio.to_thread(CliRunner().invoke, app, submit)
    assert result.exit_code == 0, result.output

    deadline = time.monotonic() + 3 * PATIENCE_SECONDS
    while not (folder / "committed").exists() or final(folder) != streams.sent:
        assert time.monotonic() < deadline, (final(folder), streams.sent)
        if not (folder / "committed").exists():
            streams.send(40)
        await asyncio.sleep(0.5)
    await _goes_back(kube, namespace, streams)
    while final(folder) != streams.sent:
        assert time.monotonic() < deadline, (final(folder), streams.sent)
        await asyncio.sleep(0.5)
    last = (await cut_after(kube, namespace, 0)).completed_sequence_id
    status = await cut_after(kube, namespace, last)

    assert final(folder) == streams.sent
    saved = (await kube.get(SAVEPOINT.path(namespace, status.cuts[-1].savepoint)))["status"]
    assert (saved["phase"], saved.get("message", "")) == ("Completed", "")
    pes = (await kube.get(PROCESSING_ELEMENT.path(namespace)))["items"]
    launches = {item["spec"]["stageName"]: item["status"]["launchCount"] for item in pes}
    assert launches == {"records": 1, "files": 4}, "each death is one more launch"
