"""Fetching bundles over HTTP and from a real git server."""

import asyncio
import base64
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.operator.integration.world import application, bundle

from streamgraft_common.bundle import BundleCorrupt
from streamgraft_common.resources import BundleSource
from streamgraft_operator.application import fetching, git
from streamgraft_operator.application.fetching import LARGEST_BYTES
from streamgraft_operator.application.sources import Credentials, FetchFailed, Networks

CONTENT = bundle(application("newer"))
OLDER = bundle(application("older"))
HERE = Networks(["127.0.0.0/8"])


async def fetch(source: BundleSource, credentials: Credentials | None) -> bytes:
    """Fetch by an operator that may go to this machine."""
    return await fetching.fetch(source, credentials, HERE)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A bare git repository with a bundle on a branch and an older one under a tag."""
    work, bare = tmp_path / "work", tmp_path / "apps.git"

    def git(*words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *identity, *words], check=True, capture_output=True, cwd=tmp_path)

    git("init", "-b", "main", str(work))
    (work / "dist").mkdir()
    for content, tag in ((OLDER, "v1"), (CONTENT, "v2")):
        (work / "dist" / "app.zip").write_bytes(content)
        git("-C", str(work), "add", ".")
        git("-C", str(work), "commit", "-m", tag)
        git("-C", str(work), "tag", tag)
    git("clone", "--bare", str(work), str(bare))
    return bare


@pytest.fixture
async def server(repository: Path) -> AsyncIterator[str]:
    """A web server with a bundle that is open, one for a token, and the repository by git's CGI."""

    async def plain(request: web.Request) -> web.StreamResponse:
        if request.path == "/large":
            return web.Response(body=bytes(LARGEST_BYTES + 1))
        if request.path == "/page":
            return web.Response(text="<html>the metadata of a machine</html>")
        if request.path == "/moved":
            raise web.HTTPFound("/open")
        if request.path == "/away":
            raise web.HTTPFound("http://localhost:1/open")
        if request.path == "/circle":
            raise web.HTTPFound("/circle")
        if request.path == "/closed" and request.headers.get("Authorization") != "Bearer t":
            raise web.HTTPForbidden
        return web.Response(body=CONTENT)

    async def smart_http(request: web.Request) -> web.Response:
        login = base64.b64encode(b"x-access-token:t").decode()
        if request.headers.get("Authorization") != f"Basic {login}":
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Basic"})
        return await _git_http_backend(repository, request)

    app = web.Application()
    app.router.add_get("/{name:open|closed|large|page|moved|away|circle}", plain)
    app.router.add_route("*", "/apps.git{path:.*}", smart_http)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def _git_http_backend(repository: Path, request: web.Request) -> web.Response:
    process = await asyncio.create_subprocess_exec(
        *("git", "http-backend"),
        env={
            **os.environ,
            "GIT_PROJECT_ROOT": str(repository.parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": request.path,
            "REQUEST_METHOD": request.method,
            "QUERY_STRING": request.query_string,
            "CONTENT_TYPE": request.content_type,
            "HTTP_CONTENT_ENCODING": "",
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        },
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate(await request.read())
    head, _, body = output.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
    status = int(headers.pop("Status", "200").split()[0])
    return web.Response(status=status, headers=headers, body=body)


def git_source(server: str, **parts: str) -> BundleSource:
    """Return a source in the repository."""
    git = {"url": f"{server}/apps.git", "path": "dist/app.zip", **parts}
    return BundleSource.model_validate({"git": git})


TOKEN = Credentials(hosts=frozenset({"127.0.0.1"}), token="t")


async def test_urls(server: str) -> None:
    assert await fetch(BundleSource(url=f"{server}/open"), None) == CONTENT
    assert await fetch(BundleSource(url=f"{server}/closed"), TOKEN) == CONTENT
    assert await fetch(BundleSource(url=f"{server}/moved"), None) == CONTENT


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("closed", "answered 403"),
        ("gone", "answered 404"),
        ("large", "more than 900 kB"),
        ("away", "redirects to another server, http://localhost:1"),
        ("circle", "redirects more than 5 times"),
    ],
)
async def test_urls_that_do_not_give_a_bundle(server: str, path: str, words: str) -> None:
    with pytest.raises(FetchFailed, match=words):
        await fetch(BundleSource(url=f"{server}/{path}"), None)


async def test_absent_server() -> None:
    with pytest.raises(FetchFailed, match="can't be read"):
        await fetch(BundleSource(url="http://127.0.0.1:1/"), None)


async def test_git(server: str) -> None:
    assert await fetch(git_source(server), TOKEN) == CONTENT
    assert await fetch(git_source(server, ref="main"), TOKEN) == CONTENT
    assert await fetch(git_source(server, ref="v1"), TOKEN) == OLDER


async def test_what_git_does_not_find(server: str) -> None:
    for source, credentials in (
        (git_source(server, ref="nowhere"), TOKEN),
        (git_source(server, path="other.zip"), TOKEN),
        (git_source(server), None),
        (git_source(server, url="http://127.0.0.1:1/apps.git"), TOKEN),
    ):
        with pytest.raises(FetchFailed, match="can't be fetched"):
            await fetch(source, credentials)


async def test_nothing_but_bundles_is_fetched(server: str) -> None:
    with pytest.raises(BundleCorrupt, match="this is no bundle"):
        await fetch(BundleSource(url=f"{server}/page"), None)


async def test_large_files_of_a_repository_are_not_read(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "LARGEST_BYTES", len(CONTENT) - 1)
    with pytest.raises(FetchFailed, match="put the bundle on a volume"):
        await fetch(git_source(server), TOKEN)


async def test_large_repositories_are_refused(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "LARGEST_FILE_MIB", 0)
    with pytest.raises(FetchFailed, match="can't be fetched"):
        await fetch(git_source(server), TOKEN)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "[::1]",
        "[fe80::1]",
        "[::ffff:10.0.0.1]",
        "[64:ff9b::a00:1]",
        "0.0.0.0",
        "localhost",
        "2130706433",
        "[fd00:ec2::254]",
        "100.64.0.1",
    ],
)
async def test_private_addresses_are_closed(host: str) -> None:
    with pytest.raises(FetchFailed, match="private address"):
        await Networks([]).resolve(f"http://{host}/bundle.zip")


async def test_addresses_that_are_open() -> None:
    assert (await Networks([]).resolve("https://1.1.1.1/a.zip")).ips == ("1.1.1.1",)
    opened = Networks(["10.1.0.0/16"])
    assert (await opened.resolve("http://10.1.2.3:81/a.zip")).port == 81
    with pytest.raises(FetchFailed, match="private address"):
        await opened.resolve("http://10.2.2.3/a.zip")


async def test_a_secret_goes_only_to_the_hosts_that_it_names(server: str) -> None:
    other = Credentials(hosts=frozenset({"git.example.com"}), token="t")
    for source in (BundleSource(url=f"{server}/closed"), git_source(server)):
        with pytest.raises(FetchFailed, match=r"for git\.example\.com, not for 127\.0\.0\.1"):
            await fetch(source, other)


def test_credentials_of_a_secret() -> None:
    def encoded(**data: str) -> dict[str, str]:
        return {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}

    token = Credentials.of("s", encoded(token="t\n", hosts="A.example.com, b"))
    assert token.for_http() == "Bearer t"
    assert token.hosts == {"a.example.com", "b"}
    login = Credentials.of("s", encoded(username="me", password="p", hosts="a"))
    assert login.for_http() == login.for_git() == "Basic bWU6cA=="
    with pytest.raises(FetchFailed, match="it has: other"):
        Credentials.of("s", encoded(other="x"))
    with pytest.raises(FetchFailed, match="needs the key hosts"):
        Credentials.of("s", encoded(token="t"))
    with pytest.raises(FetchFailed, match="one line each"):
        Credentials.of("s", encoded(token="t\nHost: other", hosts="a"))
    with pytest.raises(FetchFailed, match="holds no text"):
        Credentials.of("s", {"token": "/w=="})
