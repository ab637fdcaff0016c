"""Carrying out the actions of probes and life-cycle hooks: httpGet, tcpSocket, exec, sleep."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from streamgraft_common.kube.client import Object
from streamgraft_local.node.expansion import rewrite
from streamgraft_local.node.process import Process


@dataclass(frozen=True)
class Command:
    """What a container's process is started with."""

    words: list[str]
    variables: dict[str, str]
    folder: Path
    mounts: dict[str, str]
    """Real folder of every mount path, for what else is run in the container."""


@dataclass(frozen=True)
class Result:
    """Outcome of one action; the message says what went wrong."""

    success: bool
    message: str = ""


def port_number(container: Object, port: int | str) -> int:
    """Return the number of a port given by number or by name. Raises ValueError."""
    if isinstance(port, int):
        return port
    for declared in container.get("ports", []):
        if declared.get("name") == port:
            return int(declared["containerPort"])
    raise ValueError(f"container {container['name']} has no port named {port!r}")


class Checks:
    """Runs actions against one container of a pod."""

    def __init__(self, http: aiohttp.ClientSession, pod_ip: str) -> None:
        self._http = http
        self._pod_ip = pod_ip

    async def run(
        self, action: Object, container: Object, command: Command, timeout_seconds: float
    ) -> Result:
        """Carry out an action; everything that goes wrong is a failed result."""
        try:
            async with asyncio.timeout(timeout_seconds):
                if part := action.get("httpGet"):
                    return await self._http_get(part, container)
                if part := action.get("tcpSocket"):
                    return await self._tcp_socket(part, container)
                if part := action.get("exec"):
                    return await _exec(part["command"], command)
                await asyncio.sleep(action["sleep"]["seconds"])
                return Result(True)
        except TimeoutError:
            return Result(False, f"no result within {timeout_seconds:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Result(False, str(error) or repr(error))

    async def _http_get(self, part: Object, container: Object) -> Result:
        port = port_number(container, part["port"])
        scheme = part.get("scheme", "HTTP").lower()
        path = "/" + part.get("path", "").removeprefix("/")
        url = f"{scheme}://{part.get('host') or self._pod_ip}:{port}{path}"
        headers = {item["name"]: item["value"] for item in part.get("httpHeaders", [])}
        # The kubelet doesn't verify certificates either.
        request = self._http.get(url, headers=headers, ssl=False, allow_redirects=False)
        async with request as answer:
            success = 200 <= answer.status < 400
            return Result(success, "" if success else f"{url} answered {answer.status}")

    async def _tcp_socket(self, part: Object, container: Object) -> Result:
        port = port_number(container, part["port"])
        _, writer = await asyncio.open_connection(part.get("host") or self._pod_ip, port)
        writer.close()
        await writer.wait_closed()
        return Result(True)


async def _exec(words: list[str], command: Command) -> Result:
    rewritten = [rewrite(word, command.mounts) for word in words]
    process = Process.start(rewritten, command.variables, command.folder, None)
    try:
        code = await process.wait()
        return Result(code == 0, "" if code == 0 else f"{words[0]} ended with code {code}")
    finally:
        # On a timeout it still runs; its session is its own, so its children go with it.
        _kill_session(process.identity.pid)
        process.close()


def _kill_session(leader: int) -> None:
    try:
        os.killpg(leader, 9)
    except ProcessLookupError:
        return
