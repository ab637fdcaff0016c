"""Fetches bundles by HTTP and from git repositories. User code is fetched here, never run."""

import asyncio
import socket
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from streamgraft_common.bundle import read_bundle
from streamgraft_common.resources import BundleSource
from streamgraft_operator.application import git
from streamgraft_operator.application.sources import (
    Address,
    Credentials,
    FetchFailed,
    Networks,
    too_large,
)

LARGEST_BYTES = 900_000
"""A ConfigMap holds 1 MiB, as base64 takes a third more and metadata needs room."""
TIMEOUT_SECONDS = 60.0
REDIRECTS = 5


async def fetch(source: BundleSource, credentials: Credentials | None, networks: Networks) -> bytes:
    """Return the bundle that `url` or `git` names: nothing else than a bundle.

    Raises FetchFailed, BundleCorrupt or BundleTooNew.
    """
    where = source.git.url if source.git else source.url or ""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            address = await networks.resolve(where)
            if credentials:
                credentials.check(address.host)
            if source.git:
                data = await git.read(source.git, address, credentials, LARGEST_BYTES)
            else:
                data = await _from_url(where, address, credentials)
    except TimeoutError as error:
        raise FetchFailed(f"{where} did not answer within {TIMEOUT_SECONDS:g} s") from error
    if len(data) > LARGEST_BYTES:
        raise too_large(where, LARGEST_BYTES)
    await asyncio.to_thread(read_bundle, data)
    return data


async def _from_url(url: str, address: Address, credentials: Credentials | None) -> bytes:
    # GitHub's contents API gives the file itself for this media type, others ignore it.
    headers = {"Accept": "application/vnd.github.raw, */*", "Accept-Encoding": "identity"}
    if credentials:
        headers["Authorization"] = credentials.for_http()
    connector = aiohttp.TCPConnector(resolver=_Resolved(address))
    try:
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            for _ in range(REDIRECTS):
                async with session.get(url, headers=headers, allow_redirects=False) as answer:
                    if target := _redirect(url, answer):
                        url = target
                        continue
                    return await _body(url, answer)
    except (aiohttp.ClientError, ValueError) as error:
        raise FetchFailed(f"{url} can't be read: {error}") from error
    raise FetchFailed(f"{url} redirects more than {REDIRECTS} times")


def _redirect(url: str, answer: aiohttp.ClientResponse) -> str | None:
    """Return where a redirect leads: to the same server, or it is refused."""
    if answer.status not in (301, 302, 303, 307, 308):
        return None
    target = urljoin(url, answer.headers.get("Location", ""))
    here, there = urlsplit(url), urlsplit(target)
    if (here.scheme, here.netloc) != (there.scheme, there.netloc):
        raise FetchFailed(
            f"{url} redirects to another server, {there.scheme}://{there.netloc}: name that one in"
            " bundle.url if it is the right one"
        )
    return target


async def _body(url: str, answer: aiohttp.ClientResponse) -> bytes:
    if answer.status != 200:
        raise FetchFailed(f"{url} answered {answer.status} {answer.reason}")
    data = b""
    while len(data) <= LARGEST_BYTES and not answer.content.at_eof():
        data += await answer.content.read(LARGEST_BYTES + 1 - len(data))
    return data


class _Resolved(AbstractResolver):
    """Knows one host: the addresses that were checked are those that are asked."""

    def __init__(self, address: Address) -> None:
        self._address = address

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=ip,
                port=port,
                family=socket.AF_INET6 if ":" in ip else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for ip in self._address.ips
        ]

    async def close(self) -> None:
        """Nothing is open."""
