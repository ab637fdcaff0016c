"""Proxies that the environment names."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp import web

from streamgraft_common.kube import KubeClient, KubeConfig, Unreachable
from streamgraft_common.kube.errors import ConfigError
from streamgraft_common.kube.proxies import environment_proxy

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("no_proxy", "server", "straight"),
    [
        ("", "https://api.example.com", False),
        ("", "https://localhost:6443", True),
        ("", "https://127.0.0.1:6443", True),
        ("", "https://[::1]:6443", True),
        ("*", "https://api.example.com", True),
        ("example.com", "https://api.example.com", True),
        ("example.com", "https://example.com", True),
        (".example.com", "https://example.com", False),
        ("*.example.com", "https://api.example.com", True),
        ("example.com", "https://badexample.com", False),
        ("other, api.example.com:6443", "https://api.example.com:6443", True),
        ("api.example.com:6443", "https://api.example.com", False),
        ("10.0.0.0/8", "https://10.1.2.3", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.1.2.3", "https://10.1.2.3:6443", True),
        ("fd00::/8", "https://[fd00::1]:6443", True),
    ],
)
def test_exceptions_are_those_of_kubectl(no_proxy: str, server: str, straight: bool) -> None:
    environment = {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}
    assert environment_proxy(server, environment) == (None if straight else PROXY)


def test_which_variable_counts() -> None:
    """Its name may be in small letters; and a proxy is of HTTP, if it does not say."""
    assert environment_proxy("https://api", {"https_proxy": "proxy:3128"}) == PROXY
    assert environment_proxy("https://api", {"HTTP_PROXY": PROXY}) is None
    with pytest.raises(ConfigError, match="only HTTP proxies"):
        environment_proxy("https://api", {"HTTPS_PROXY": "socks5://proxy:1080"})


@pytest.fixture
async def proxy() -> AsyncIterator[str]:
    """The URL of a proxy that answers itself, with what it was asked for."""

    async def answer(request: web.BaseRequest) -> web.Response:
        return web.json_response({"for": str(request.url), "by": request.headers.get(WHO)})

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


WHO = "Proxy-Authorization"
API = KubeConfig(server="http://api.invalid")


async def test_people_go_through_it(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And components do not: theirs is no other way than the configuration's."""
    monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@{proxy}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with KubeClient(API, environment_proxies=True) as client:
        answer = await client.get("/version")
    assert answer["for"] == "http://api.invalid/version"
    assert answer["by"].startswith("Basic ")
    async with KubeClient(API) as client:
        with pytest.raises(Unreachable):
            await client.get("/version")


async def test_the_one_of_the_kubeconfig_comes_first(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    config = replace(API, proxy=f"http://{proxy}")
    async with KubeClient(config, environment_proxies=True) as client:
        assert (await client.get("/version"))["by"] is None
