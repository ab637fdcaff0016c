"""The conformance suite against our server: Kubernetes' own clients, through the aggregator."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streamgraft_local import Cluster
from streamgraft_local.paths import cache_folder
from streamgraft_local.progress import silent
from streamgraft_local.toolchain.cache import Cache
from streamgraft_local.toolchain.golang import Module, build

pytestmark = pytest.mark.integration

SUITE = Module("conformance", Path(__file__).parents[1] / "conformance")


async def test_conformance(region: Any, until: Any, cluster: Cluster) -> None:
    """Objects of three kinds, a namespace, an external metric; and forgery straight at the port."""
    region.load(arriving=100, processed=50, busy=0.5)
    custom = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{region.namespace}"

    async def served() -> bool:
        paths = (f"{custom}/pods/flights-0-1/utilization", f"{custom}/metrics/total_lag")
        for path in paths:
            if await region.tried(path) is None:
                return False
        return await region.value("utilization") is not None

    await until(served, 120)
    command = (
        *(str(build(Cache(cache_folder(), silent), SUITE)), "-kubeconfig", str(cluster.kubeconfig)),
        *("-object", f"{region.namespace}/parallelregions.streamgraft.io/flights-enrich/total_lag"),
        *(
            "-object",
            f"{region.namespace}/parallelregions.streamgraft.io/flights-enrich/utilization",
        ),
        *("-object", f"{region.namespace}/pods/flights-0-1/utilization"),
        *("-root", f"namespaces/{region.namespace}/total_lag"),
        *("-external", f"{region.namespace}/streamgraft_total_lag"),
        *("-direct", cluster.adapter_url),
        *("-wait", "90s"),
    )
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "checks passed" in done.stdout
