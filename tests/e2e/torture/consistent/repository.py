"""The repository of the copies: a Redis server that can be killed and frozen."""

import asyncio
from base64 import b64encode
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.e2e.torture.schedule import Kill
from tests.e2e.torture.victims import strike
from tests.repositories.servers import redis_server

from streamgraft_common.kinds import SECRET
from streamgraft_common.kube import KubeClient
from streamgraft_local import ports
from streamgraft_local.processes import Process

HOST = "127.0.0.1"
SECRET_NAME = "copies"
PASSWORD = "sesame"


class Repository:
    """A server that runs as long as the context lasts, apart from what it suffers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = ports.choose(["redis"], {})["redis"]
        self._running = ExitStack()

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    @property
    def spec(self) -> dict[str, Any]:
        """What the Job of whoever uses it says."""
        redis = {"service": HOST, "port": self._port, "restrictedProperty": "password"}
        return {
            "checkpointRepository": {"redis": redis},
            "restrictedPropertiesSecret": SECRET_NAME,
        }

    async def tell(self, client: KubeClient, namespace: str) -> None:
        """Make its password known in a namespace."""
        data = {"password": b64encode(PASSWORD.encode()).decode()}
        metadata = {"name": SECRET_NAME, "namespace": namespace}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        await client.create(SECRET.path(namespace), secret)

    async def suffer(self, kill: Kill) -> None:
        """Freeze it for a while, or kill it and start it again after that time."""
        if kill.means == "freeze":
            process = Process.of(self._process.pid)
            assert process is not None
            await strike([process], kill)
            return
        await asyncio.to_thread(self._running.close)
        try:
            await asyncio.sleep(kill.seconds)
        finally:
            await asyncio.to_thread(self._start)

    def _start(self) -> None:
        protected = ("--requirepass", PASSWORD)
        server = redis_server(self._folder, HOST, self._port, *protected)
        self._process = self._running.enter_context(server)
