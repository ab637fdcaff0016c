"""The past days, read from a real Prometheus that remembers them."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from tests.metrics_adapter.test_load_history import Adapter
from tests.promtool.backfill import backfill

from streamgraft_autoscaler.forecast import BUCKET_SECONDS, DAY_BUCKETS, bucket_of
from streamgraft_local import ports
from streamgraft_local.paths import cache_folder
from streamgraft_local.progress import silent
from streamgraft_local.toolchain import prometheus
from streamgraft_local.toolchain.cache import Cache
from streamgraft_metrics_adapter.prometheus.server import PrometheusServer
from streamgraft_metrics_adapter.prometheus.source import PrometheusSource

pytestmark = pytest.mark.integration

DAYS = 3
PARTITIONS = 2
SCRAPE_SECONDS = 60
POD_BUCKETS = 7
"""So long a pod lives, and then its partitions go on in another one."""


def rate(bucket: int) -> float:
    """Return the records/s of a region: high in the second half of the day."""
    return 10.0 if bucket % DAY_BUCKETS < DAY_BUCKETS // 2 else 90.0


def samples(end: int) -> Iterator[tuple[str, float, float]]:
    """Yield the positions of a region's partitions over the days up to a quarter; besides those
    of its second stage, which counts the same records again."""
    first = end - DAYS * DAY_BUCKETS
    for stage in (0, 1):
        for partition in range(PARTITIONS):
            position = 1e6
            for bucket in range(first, end):
                pod = f"p{bucket // POD_BUCKETS}"
                labels = (
                    f'namespace="ns",streams_job="j",region="r",stage="{stage}",topic="t",'
                    f'partition="{partition}",pod="{pod}"'
                )
                for second in range(0, int(BUCKET_SECONDS), SCRAPE_SECONDS):
                    yield labels, bucket * BUCKET_SECONDS + second, position
                    position += rate(bucket) / PARTITIONS * SCRAPE_SECONDS


@contextmanager
def running(folder: Path, *arguments: str, auth: tuple[str, str] | None = None) -> Iterator[str]:
    """Run a Prometheus on what is in the folder, and yield its URL."""
    program = prometheus.find(Cache(cache_folder(), silent))
    configuration = folder / "prometheus.yml"
    configuration.write_text("scrape_configs: []\n")
    url = f"127.0.0.1:{ports.choose(('prometheus',), {})['prometheus']}"
    command = (
        str(program),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        "--storage.tsdb.retention.time=16d",
        f"--web.listen-address={url}",
        *arguments,
    )
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait(f"http://{url}/-/ready", auth)
            yield f"http://{url}"
        finally:
            process.terminate()


def _wait(url: str, auth: tuple[str, str] | None) -> None:
    for _ in range(300):
        try:
            if requests.get(url, timeout=5, auth=auth).status_code == 200:
                return
        except requests.RequestException:
            pass
        time.sleep(0.1)
    raise TimeoutError(url)


async def test_the_past_days_are_those_that_prometheus_remembers(tmp_path: Path) -> None:
    # Six in the morning: the hours before, which tell how today compares, have no jump.
    today = bucket_of(time.time()) // DAY_BUCKETS * DAY_BUCKETS
    end = today - DAY_BUCKETS + DAY_BUCKETS // 4
    metric = "streamgraft_pe_input_end_offset"
    backfill(metric, samples(end), tmp_path / "tsdb")
    with running(tmp_path) as url:
        adapter = Adapter(PrometheusSource(PrometheusServer(url)))
        # The last sample is a minute older than the end of its quarter.
        found = await adapter.at(end + 0.5)
    assert found is not None
    assert found.trusted
    expected = [rate(end + number) for number in range(DAY_BUCKETS)]
    # A position is up to a minute old, so where the rate jumps its quarter has a share of both.
    assert found.rates == pytest.approx(expected, abs=80 / 15 + 1)
    assert sum(found.rates) == pytest.approx(sum(expected), rel=0.02)
