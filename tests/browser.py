"""A real Chromium without a window, driven by the DevTools protocol over aiohttp."""

import asyncio
import base64
import itertools
import json
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
"""Debian's package `chromium`; None where it is not installed."""
_DEADLINE_SECONDS = 60.0


class Browser:
    """One page. Errors of its scripts, and requests that its security policy blocks, are noted."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.errors: list[str] = []

    async def listen(self) -> None:
        """Take in answers and events until the browser ends."""
        async for message in self._socket:
            found = json.loads(message.data)
            if waiting := self._answers.pop(found.get("id", 0), None):
                waiting.set_result(found)
            elif found.get("method") == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(found["params"]["exceptionDetails"])[:500])
            elif found.get("method") == "Log.entryAdded":
                entry = found["params"]["entry"]
                if entry["level"] == "error" and entry["source"] != "network":
                    self.errors.append(entry["text"])

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol and return its result."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        answer = await asyncio.wait_for(self._answers[number], _DEADLINE_SECONDS)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    async def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression, or of what it promises."""
        found = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, script: str, seconds: float = _DEADLINE_SECONDS) -> None:
        """Wait until an expression is truthy."""
        try:
            async with asyncio.timeout(seconds):
                while not await self.run(f"!!({script})"):
                    await asyncio.sleep(0.1)
        except TimeoutError:
            text = await self.run("document.body.innerText")
            raise AssertionError(f"never: {script}\n{self.errors}\n{text}") from None

    async def go(self, url: str) -> None:
        """Open a page."""
        await self.call("Page.navigate", url=url)

    async def key(self, name: str) -> None:
        """Press a key."""
        text = {"text": "\r"} if name == "Enter" else {}
        code = {"Tab": 9, "Enter": 13, "ArrowLeft": 37}[name]
        event = {"key": name, "code": name, "windowsVirtualKeyCode": code}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **event, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    async def dress(self, scheme: str) -> None:
        """Prefer a color scheme: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def picture(self, file: Path) -> None:
        """Save the whole page as PNG, sharp on fine screens, too."""
        await self.run("scrollTo(0, 0)")  # else what sticks to the top lies amid the page
        size = (await self.call("Page.getLayoutMetrics"))["cssContentSize"]
        found = await self.call(
            "Page.captureScreenshot", captureBeyondViewport=True, clip={**size, "scale": 2}
        )
        await asyncio.to_thread(file.write_bytes, base64.b64decode(found["data"]))


@asynccontextmanager
async def browser(folder: Path, size: tuple[int, int] = (1280, 900)) -> AsyncIterator[Browser]:
    """Run Chromium with its profile in a folder; servers may have any certificate."""
    assert PROGRAM is not None
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        "--hide-scrollbars",
        *("--remote-debugging-port=0", "--ignore-certificate-errors", "--no-first-run"),
        *(f"--user-data-dir={folder}", f"--window-size={size[0]},{size[1]}", "about:blank"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )
    try:
        async with aiohttp.ClientSession() as session:
            url = await _page(session, folder / "DevToolsActivePort")
            async with session.ws_connect(url, max_msg_size=0) as socket:
                page = Browser(socket)
                listening = asyncio.create_task(page.listen())
                for domain in ("Page", "Runtime", "Log"):
                    await page.call(f"{domain}.enable")
                yield page
                listening.cancel()
    finally:
        process.terminate()
        await process.wait()


async def _page(session: aiohttp.ClientSession, file: Path) -> str:
    async with asyncio.timeout(_DEADLINE_SECONDS):
        while not (port := _port(file)):
            await asyncio.sleep(0.05)
        while True:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                pages: list[Mapping[str, str]] = await answer.json()
            for page in pages:
                if page["type"] == "page":
                    return page["webSocketDebuggerUrl"]
            await asyncio.sleep(0.05)


def _port(file: Path) -> str:
    """Return the port that the browser has written down; '' before that."""
    return (file.read_text().split() or [""])[0] if file.exists() else ""
