"""Reads one file of a git repository, within bounds of disk, memory and time."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from streamgraft_common.resources import GitBundle
from streamgraft_operator.application.sources import Address, Credentials, FetchFailed, too_large

LARGEST_FILE_MIB = 256
"""Of what git writes: packs of larger repositories are refused."""
_ERROR_BYTES = 2000


async def read(
    source: GitBundle, address: Address, credentials: Credentials | None, largest: int
) -> bytes:
    """Return the file, if it has at most `largest` bytes. Raises FetchFailed."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="streamgraft-git-"))
    where = f"{source.path} of {source.url} at {source.ref}"
    git = _Git(folder, where, address, credentials)
    try:
        await git.run("init", "--quiet", "--bare", str(folder / "repository"))
        fetched = ("fetch", "--quiet", "--depth=1", "--no-tags", source.url, source.ref)
        await git.run("-C", str(folder / "repository"), *fetched)
        blob = f"FETCH_HEAD:{source.path}"
        size = await git.run("-C", str(folder / "repository"), "cat-file", "-s", blob)
        if int(size) > largest:
            raise too_large(where, largest)
        return await git.run("-C", str(folder / "repository"), "cat-file", "blob", blob)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


class _Git:
    def __init__(
        self, folder: Path, where: str, address: Address, credentials: Credentials | None
    ) -> None:
        self._errors = folder / "errors"
        self._where = where
        self._environment = _environment(folder, address, credentials)

    async def run(self, *words: str) -> bytes:
        blocks = LARGEST_FILE_MIB * 2048  # of 512 bytes, by POSIX
        limited = f'ulimit -f {blocks}; exec git "$@"'
        try:
            with self._errors.open("wb") as errors:
                process = await asyncio.create_subprocess_exec(
                    *("sh", "-c", limited, "git", *words),
                    env=self._environment,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=errors,
                )
        except OSError as error:
            raise FetchFailed(f"git can't be run: {error}") from error
        try:
            output, _ = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if process.returncode:
            raise FetchFailed(f"{self._where} can't be fetched: {self._said()}")
        return output

    def _said(self) -> str:
        with self._errors.open("rb") as errors:
            text = errors.read(_ERROR_BYTES).decode(errors="replace").strip()
        return text or f"git gave up; it may write {LARGEST_FILE_MIB} MiB a file"


def _environment(
    folder: Path, address: Address, credentials: Credentials | None
) -> Mapping[str, str]:
    settings = {
        "http.followRedirects": "false",
        "http.curloptResolve": f"{address.host}:{address.port}:{','.join(address.ips)}",
    }
    if credentials:  # by environment: arguments can be seen by everyone on the machine
        settings["http.extraHeader"] = f"Authorization: {credentials.for_git()}"
    environment = {
        **os.environ,
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "http:https",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (key, value) in enumerate(settings.items()):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return environment
