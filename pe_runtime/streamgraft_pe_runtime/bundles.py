"""The bundle that a running driver takes its code from.

Read through the API server: the volume of a pod that runs follows its ConfigMap minutes later.
"""

import asyncio
import base64
import logging
from pathlib import Path

from streamgraft_common.kinds import CONFIG_MAP
from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_common.pe_metadata import PeMetadata

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


class OtherCode(Exception):
    """The bundle that is there has other code than the PE is to run."""

    def __init__(self, pe: PeMetadata) -> None:
        place = f"ConfigMap {pe.bundle.config_map}" if pe.bundle else "the bundle's file"
        super().__init__(
            f"{place} has other code for {', '.join(pe.operators)} than the job was planned with:"
            " was an edit refused? Submit the version that the job runs, or one that it accepts"
        )


class Bundles:
    """Reads the job's bundle as it is now. `file`: where the pod has it."""

    def __init__(self, client: KubeClient, namespace: str, file: Path) -> None:
        self._client = client
        self._namespace = namespace
        self._file = file

    async def read(self, pe: PeMetadata) -> bytes:
        """Return the bundle; waits for the API server, and for a bundle that was deleted."""
        if pe.bundle is None:
            return await asyncio.to_thread(self._file.read_bytes)
        path = CONFIG_MAP.path(self._namespace, pe.bundle.config_map)
        while True:
            try:
                item = await self._client.get(path)
                return base64.b64decode(item["binaryData"][pe.bundle.key])
            except (ApiError, Unreachable, KeyError) as error:
                log.warning("the bundle was not read: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
