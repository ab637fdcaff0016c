"""A thin asynchronous client: paths and plain dicts in, plain dicts out."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp

from streamgraft_common.kube.config import KubeConfig
from streamgraft_common.kube.documents import loads
from streamgraft_common.kube.errors import ConfigError, NotFound, Unreachable, error_of
from streamgraft_common.kube.proxies import environment_proxy

Object = dict[str, Any]
MergePatch = Mapping[str, Any]

PAGE = 1000
"""Objects of a list that are asked for at a time."""

_NO_PATH = re.compile(r"[?#%\\]|//|/\.{1,2}(/|$)")
"""In a path that names no object. Names come from resources of all tenants, and `..` would lead to
those of another one."""
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_JSON = "application/json"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class KubeClient:
    """Use as an async context manager, within one event loop.

    Every call raises a subclass of ApiError for an error answer, Unreachable for none.
    """

    def __init__(
        self,
        config: KubeConfig,
        *,
        timeout_seconds: float = 30.0,
        peer: str = "the API server",
        environment_proxies: bool = False,
    ) -> None:
        """`peer`: what errors call the server. `environment_proxies`: whether $HTTPS_PROXY and
        $NO_PROXY hold where the configuration names no proxy, as for people's tools; components
        get them by accident only, with a pod's other variables. Raises ConfigError.
        """
        self.config = config
        proxy = environment_proxy(config.server) if environment_proxies else None
        self._proxy = config.proxy or proxy
        self._peer = peer
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        context = self.config.ssl_context()
        # Each watch has a connection for as long as it lasts, and there are many of them.
        connector = aiohttp.TCPConnector(ssl=context if context else False, limit=0)
        self._session = aiohttp.ClientSession(connector=connector)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._session:
            await self._session.close()

    async def get(self, path: str, **query: str) -> Object:
        """Return one object, or a list object."""
        return await self.request("GET", path, query=query)

    async def find(self, path: str) -> Object | None:
        """Return one object, or None if it does not exist."""
        try:
            return await self.get(path)
        except NotFound:
            return None

    async def list(
        self, path: str, selectors: Mapping[str, str], *, metadata_only: bool = False
    ) -> Object:
        """Return a list object; with `metadata_only` its items have nothing but metadata.

        It is read page by page, all of one version. Raises Gone if a page came too late.
        """
        accept = _METADATA_LIST if metadata_only else _JSON
        query = {**selectors, "limit": str(PAGE)}
        page = await self.request("GET", path, query=query, accept=accept)
        items = page["items"] or []
        while token := page["metadata"].get("continue"):
            further = {**query, "continue": token}
            page = await self.request("GET", path, query=further, accept=accept)
            items += page["items"] or []
        return {**page, "items": items}

    async def create(self, path: str, body: Object, **query: str) -> Object:
        """Create an object in the collection at `path`."""
        return await self.request("POST", path, body=body, query=query)

    async def replace(self, path: str, body: Object) -> Object:
        """Replace an object; fails with Conflict if its resourceVersion is stale."""
        return await self.request("PUT", path, body=body)

    async def patch(self, path: str, body: MergePatch, **query: str) -> Object:
        """Apply a JSON merge patch (None deletes a field)."""
        return await self.request("PATCH", path, body=body, query=query, content_type=_MERGE)

    async def apply(self, path: str, body: Object, manager: str, **query: str) -> Object:
        """Apply server-side, forcing our fields: creates the object if it is missing."""
        sent = {"fieldManager": manager, "force": "true", **query}
        return await self.request("PATCH", path, body=body, query=sent, content_type=_APPLY)

    async def delete(self, path: str, *, propagation: str = "Background", **query: str) -> Object:
        """Delete an object, or (with labelSelector=…) everything that matches in a collection."""
        body = {"propagationPolicy": propagation}
        return await self.request("DELETE", path, body=body, query=query)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> Object:
        """Send one request and return the decoded answer."""
        headers = {"Content-Type": content_type, "Accept": accept}
        async with self._open(method, path, body, query, headers, self._timeout) as response:
            await _refuse_errors(response)
            text = await response.text()
            document = _decoded(text)
            return document if document is not None else {"text": text}

    async def watch(
        self,
        path: str,
        resource_version: str,
        selectors: Mapping[str, str] | None = None,
        *,
        metadata_only: bool = False,
        timeout_seconds: int = 300,
    ) -> AsyncIterator[tuple[str, Object]]:
        """Yield (type, object) from a watch: ADDED, MODIFIED, DELETED, BOOKMARK.

        Ends when the server closes it; raises Gone if the version is too old.
        """
        query = {
            **(selectors or {}),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
        }
        timeout = aiohttp.ClientTimeout(total=timeout_seconds + 30, sock_connect=10)
        headers = {"Accept": _METADATA if metadata_only else _JSON}
        async with self._open("GET", path, None, query, headers, timeout) as response:
            await _refuse_errors(response)
            async for line in _lines(response):
                if not line.endswith(b"\n") or not line.strip():
                    continue  # cut off with the connection: the next watch brings it again
                event = loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise error_of(int(status.get("code", 500)), status, line.decode())
                yield event["type"], event["object"]

    async def lines(self, path: str, **query: str) -> AsyncIterator[str]:
        """Yield the lines of a text (a pod's log) as they come; with follow=true it has no end."""
        async with self._text(path, query) as response:
            await _refuse_errors(response)
            async for line in _lines(response):
                yield line.removesuffix(b"\n").decode(errors="replace")

    async def blocks(self, path: str, **query: str) -> AsyncIterator[bytes]:
        """Yield a text in pieces as they come: its lines may be longer than memory."""
        async with self._text(path, query) as response:
            await _refuse_errors(response)
            async for block in response.content.iter_any():
                yield block

    def _text(self, path: str, query: Mapping[str, str]) -> "_Answer":
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
        return self._open("GET", path, None, query, {"Accept": "*/*"}, timeout)

    def _open(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
    ) -> "_Answer":
        if self._session is None:
            raise RuntimeError("use the client as an async context manager")
        if _NO_PATH.search(path):
            raise NotFound(404, "NotFound", f"{path} names no object: check the names in it")
        sent = {"User-Agent": "streamgraft", **headers}
        if token := self._token():
            sent["Authorization"] = f"Bearer {token}"
        return _Answer(
            self._session.request(
                method,
                self.config.server + path,
                params=query or None,
                data=json.dumps(body) if body is not None else None,
                headers=sent,
                timeout=timeout,
                server_hostname=self.config.tls_server_name,
                proxy=self._proxy,
            ),
            self._peer,
        )

    def _token(self) -> str | None:
        try:
            return self.config.bearer_token()
        except ConfigError as error:
            raise Unreachable(str(error)) from error


class _Answer:
    """An answer whose transport errors come out as Unreachable, body included."""

    def __init__(self, pending: Any, peer: str) -> None:
        self._pending = pending
        self._peer = peer

    async def __aenter__(self) -> aiohttp.ClientResponse:
        try:
            response: aiohttp.ClientResponse = await self._pending.__aenter__()
            return response
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"no answer from {self._peer}: {error!r}") from error

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._pending.__aexit__(kind, error, trace)
        if isinstance(error, aiohttp.ClientError | OSError | asyncio.TimeoutError):
            raise Unreachable(f"the answer broke off: {error!r}") from error


def _decoded(text: str) -> Object | None:
    try:
        document = loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


async def _refuse_errors(response: aiohttp.ClientResponse) -> None:
    if response.status >= 400:
        text = await response.text()
        wait = response.headers.get("Retry-After")
        raise error_of(response.status, _decoded(text), text, wait)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the lines with their newline; the last one has none if it was cut off."""
    # aiohttp's own line reader refuses lines above its buffer's limit; objects can be larger.
    rest: list[bytes] = []
    async for chunk in response.content.iter_any():
        *whole, last = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*rest, line, b"\n"])
            rest = []
        rest.append(last)
    if cut_off := b"".join(rest):
        yield cut_off
