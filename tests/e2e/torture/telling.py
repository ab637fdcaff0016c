"""What a torture run tells, and what it leaves if something is wrong."""

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from streamgraft_common.kube import KubeClient, load_config
from streamgraft_common.resources import (
    CONSISTENT_REGION,
    JOB,
    PARALLEL_REGION,
    PROCESSING_ELEMENT,
    SAVEPOINT,
)
from streamgraft_local import Cluster

_KINDS = (JOB, PARALLEL_REGION, PROCESSING_ELEMENT, CONSISTENT_REGION, SAVEPOINT)


def narrator() -> Callable[[str], None]:
    """Return what prints a line with the seconds since now."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    return say


async def kept(cluster: Cluster, namespace: str) -> Path:
    """Copy all logs and resources of a cluster to a folder that stays, and return it."""
    folder = Path(tempfile.mkdtemp(prefix="streamgraft-torture-kept-"))
    await asyncio.to_thread(shutil.copytree, cluster.home.logs, folder / "logs")
    async with KubeClient(load_config(cluster.kubeconfig)) as client:
        for kind in _KINDS:
            found = (await client.get(kind.path(namespace)))["items"]
            (folder / f"{kind.plural}.json").write_text(json.dumps(found, indent=1))
        events = (await client.get(f"/api/v1/namespaces/{namespace}/events"))["items"]
        (folder / "events.json").write_text(json.dumps(events, indent=1))
    return folder
