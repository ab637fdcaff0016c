"""Operators as processes of their own, with the operator's own rights."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.operator.integration.world import World

from streamgraft_common.access import SYSTEM_NAMESPACE
from streamgraft_local import Cluster

LEASE_SECONDS = 9
"""So long that a leader on a slow machine does not lose it by itself."""


@asynccontextmanager
async def operator_process(
    cluster: Cluster, world: World, folder: Path, name: str = "operator"
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run an operator for the namespace of `world`; those of one namespace share a lease.

    It logs into `<folder>/<name>.log`.
    """
    with (folder / f"{name}.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "streamgraft_operator"),
            *("--kubeconfig", str(cluster.home.kubeconfig("operator"))),
            *("--bootstrap-servers", cluster.bootstrap_servers, "--image", "streamgraft"),
            *("--checkpoint-volume", f'{{"hostPath": {{"path": "{folder}"}}}}'),
            *("--namespace", world.namespace, "--lease", world.namespace),
            *("--own-namespace", SYSTEM_NAMESPACE),
            *("--lease-seconds", str(LEASE_SECONDS), "--metrics-port", "0"),
            stderr=log,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
