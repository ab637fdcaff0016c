"""Fetches bundles by HTTP and from git repositories. User code is fetched here, never run."""

import asyncio
import base64
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from streamgraft_common.bundle import BundleError
from streamgraft_common.resources import BundleSource, GitBundle

LARGEST_BYTES = 900_000
"""A ConfigMap holds 1 MiB, as base64 takes a third more and metadata needs room."""
TIMEOUT_SECONDS = 60.0


class FetchFailed(BundleError):
    """The source did not give the bundle; the message says what it answered."""

    reason = "BundleFetchFailed"


@dataclass(frozen=True)
class Credentials:
    """What a Secret says to a source: a token, or a user name and a password."""

    token: str = ""
    username: str = ""
    password: str = ""

    @classmethod
    def of(cls, name: str, data: Mapping[str, str]) -> "Credentials":
        """Return those in the data (base64) of the Secret of that name. Raises FetchFailed."""
        keys = ("token", "username", "password")
        found = {key: base64.b64decode(data[key]).decode().strip() for key in keys if key in data}
        if not ("token" in found or {"username", "password"} <= found.keys()):
            have = ", ".join(sorted(data)) or "none"
            raise FetchFailed(
                f"Secret {name} needs the key token, or username and password (it has: {have})"
            )
        return cls(**found)

    def for_http(self) -> str:
        """Return the Authorization header for a plain request."""
        return f"Bearer {self.token}" if self.token else self._basic(self.username, self.password)

    def for_git(self) -> str:
        """Return the Authorization header for git, whose servers take tokens as passwords."""
        if self.token:
            return self._basic(self.username or "x-access-token", self.token)
        return self._basic(self.username, self.password)

    @staticmethod
    def _basic(username: str, password: str) -> str:
        return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


async def fetch(source: BundleSource, credentials: Credentials | None) -> bytes:
    """Return the bundle that `url` or `git` names. Raises FetchFailed."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            if source.git:
                return await _from_git(source.git, credentials)
            return await _from_url(source.url or "", credentials)
    except TimeoutError as error:
        where = source.git.url if source.git else source.url
        raise FetchFailed(f"{where} did not answer within {TIMEOUT_SECONDS:g} s") from error


async def _from_url(url: str, credentials: Credentials | None) -> bytes:
    # GitHub's contents API gives the file itself for this media type, others ignore it.
    headers = {"Accept": "application/vnd.github.raw, */*"}
    if credentials:
        headers["Authorization"] = credentials.for_http()
    try:
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
            if answer.status != 200:
                raise FetchFailed(f"{url} answered {answer.status} {answer.reason}")
            data = await answer.content.read(LARGEST_BYTES + 1)
            while len(data) <= LARGEST_BYTES and not answer.content.at_eof():
                data += await answer.content.read(LARGEST_BYTES + 1 - len(data))
    except aiohttp.ClientError as error:
        raise FetchFailed(f"{url} can't be read: {error}") from error
    return _checked(url, data)


async def _from_git(source: GitBundle, credentials: Credentials | None) -> bytes:
    folder = Path(tempfile.mkdtemp(prefix="streamgraft-git-"))
    where = f"{source.path} of {source.url} at {source.ref}"
    environment = _git_environment(folder, credentials)
    try:
        await _git(where, environment, "init", "--quiet", "--bare", str(folder))
        fetched = ("fetch", "--quiet", "--depth=1", "--no-tags", source.url, source.ref)
        await _git(where, environment, "-C", str(folder), *fetched)
        blob = f"FETCH_HEAD:{source.path}"
        return _checked(where, await _git(where, environment, "-C", str(folder), "show", blob))
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _git_environment(folder: Path, credentials: Credentials | None) -> dict[str, str]:
    environment = {
        **os.environ,
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "http:https",
    }
    if credentials:  # by environment: arguments can be seen by everyone on the machine
        environment |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "http.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: {credentials.for_git()}",
        }
    return environment


async def _git(where: str, environment: dict[str, str], *words: str) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            "git",
            *words,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise FetchFailed(f"git can't be run: {error}") from error
    try:
        output, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        raise FetchFailed(f"{where} can't be fetched: {errors.decode(errors='replace').strip()}")
    return output


def _checked(where: str, data: bytes) -> bytes:
    if len(data) > LARGEST_BYTES:
        raise FetchFailed(
            f"{where} has more than {LARGEST_BYTES // 1000} kB: put the bundle on a volume that"
            " operator and PEs share, and name it in bundle.file"
        )
    return data
