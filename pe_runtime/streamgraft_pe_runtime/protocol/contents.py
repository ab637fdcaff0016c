"""What our PE is made of, as it changes: read from its ConfigMap.

Read through the API server, for a warm pod has no volume with it, and volumes lag by minutes.
"""

import asyncio
import logging

from streamgraft_common import names
from streamgraft_common.kube import ApiError, KubeClient, Unreachable
from streamgraft_pe_runtime.protocol.element import Element, OwnElement

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.2


class Contents:
    """The contents of our PE, one after the other."""

    def __init__(self, client: KubeClient, own: OwnElement) -> None:
        self._client = client
        self._own = own
        self._seen = "", ""

    async def next(self, again_in: float | None = None) -> tuple[Element, str]:
        """Wait for a PE or a content that is new; return that and the graph metadata, as JSON.

        `again_in`: seconds after which the last one comes again if none is new.
        """
        while True:
            try:
                async with asyncio.timeout(again_in):
                    element = await self._own.other_than(*self._seen)
            except TimeoutError:
                self._seen = "", ""
                continue
            metadata = await metadata_of(self._client, element)
            if metadata is not None:
                self._seen = element.uid, element.content
                return element, metadata
            await asyncio.sleep(_RETRY_SECONDS)


async def metadata_of(client: KubeClient, element: Element) -> str | None:
    """Return the graph metadata of a PE, as JSON, if its ConfigMap has the PE's content by now."""
    return await metadata_with(client, *element.key, element.content)


async def metadata_with(client: KubeClient, namespace: str, pe: str, content: str) -> str | None:
    """Return the graph metadata of a PE, as JSON, if its ConfigMap has this content by now."""
    try:
        item = await client.get(f"/api/v1/namespaces/{namespace}/configmaps/{pe}")
    except (ApiError, Unreachable) as error:
        log.warning("the ConfigMap of %s was not read: %s", pe, error)
        return None
    annotations = item["metadata"].get("annotations", {})
    if annotations.get(names.ANNOTATION_CONTENT, "") != content:
        return None
    return str(item["data"][names.PE_METADATA_KEY])
