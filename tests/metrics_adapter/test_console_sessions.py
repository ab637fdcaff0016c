"""How browsers sign in and out: the routes and the middleware, without a server."""

import json
from http.cookies import SimpleCookie
from typing import Any

from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from streamgraft_common.kube.config import KubeConfig
from streamgraft_metrics_adapter.access.guard import USER
from streamgraft_metrics_adapter.access.sessions import COOKIE, Sessions, SessionsAsTokens
from streamgraft_metrics_adapter.api.console.routes import add_console


class Console:
    """The routes behind a guard that takes each token for the name of its user."""

    def __init__(self) -> None:
        self.sessions = Sessions()
        self._app = FastAPI()
        add_console(self._app, KubeConfig(server="http://127.0.0.1:1"), self.sessions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, as from this user."""
        token = dict(scope["headers"]).get(b"authorization", b"Bearer ?").decode().split()[1]
        await self._app({**scope, "state": {USER: token}}, receive, send)


class Browser:
    """Keeps cookies as browsers do: by host, whatever the port."""

    def __init__(self, console: Console, cookies: dict[str, str] | None = None) -> None:
        self.console = console
        self.cookies = {} if cookies is None else cookies

    async def send(self, method: str, host: str, **headers: str) -> tuple[int, dict[str, Any]]:
        """Ask for a session or its end; return the status code and the document."""
        jar = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"host": host, "cookie": jar, **named}
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": "/console/api/session",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }
        middleware = SessionsAsTokens(self.console, self.console.sessions)
        await middleware(scope, receive, send)
        for header, text in sent[0]["headers"]:
            if header == b"set-cookie":
                self._keep(text.decode())
        return sent[0]["status"], json.loads(b"".join(part.get("body", b"") for part in sent[1:]))

    def _keep(self, text: str) -> None:
        for name, kept in SimpleCookie(text).items():
            self.cookies[name] = kept.value
            if not kept.value:
                del self.cookies[name]

    async def sign_in(self, user: str, host: str = "h:8443") -> str:
        """Return the word of the page."""
        _, session = await self.send("POST", host, authorization=f"Bearer {user}")
        return str(session["csrf"])


async def test_a_sign_in_in_another_tab_replaces_that_of_the_first() -> None:
    """The first learns why, ends nothing of the other's, and nothing is left of its session."""
    browser = Browser(Console())
    first = await browser.sign_in("ann")
    (secret,) = browser.cookies.values()
    assert browser.console.sessions.find(secret)
    second = await browser.sign_in("bob")
    assert browser.console.sessions.find(secret) is None
    code, refusal = await browser.send("DELETE", "h:8443", x_streamgraft_csrf=first)
    assert (code, refusal["reason"]) == (401, "SignInReplaced")
    assert "another sign-in in this browser" in refusal["message"]
    assert await browser.send("DELETE", "h:8443", x_streamgraft_csrf=second) == (200, {})


async def test_consoles_on_two_ports_do_not_sign_each_other_out() -> None:
    browser = Browser(Console())
    word = await browser.sign_in("ann")
    await Browser(Console(), browser.cookies).sign_in("ann", "h:9443")
    assert sorted(browser.cookies) == [f"{COOKIE}-8443", f"{COOKIE}-9443"]
    assert await browser.send("DELETE", "h:8443", x_streamgraft_csrf=word) == (200, {})
    assert list(browser.cookies) == [f"{COOKIE}-9443"]


async def test_sessions_and_tickets_are_of_their_user() -> None:
    """One account that signs in again and again signs nobody else out."""
    console = Console()
    browser = Browser(console)
    word = await browser.sign_in("ann")
    for _ in range(60):
        await Browser(console).sign_in("bob")
    assert await browser.send("DELETE", "h:8443", x_streamgraft_csrf=word) == (200, {})
