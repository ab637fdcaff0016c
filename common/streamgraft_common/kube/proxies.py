"""Which proxy the environment names for a server: by kubectl's rules, which are Go's.

Python's own rules, which aiohttp follows, would send even loopback addresses through the proxy,
and know no networks in NO_PROXY.
"""

import os
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from streamgraft_common.kube.errors import ConfigError

_PORTS = {"http": 80, "https": 443}


def environment_proxy(server: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the URL of the proxy on the way to a server's URL, or None: straight.

    Raises ConfigError for a proxy that is not known here.
    """
    place = urlsplit(server)
    host, port = place.hostname or "", place.port or _PORTS.get(place.scheme)
    proxy = _variable(environment, f"{place.scheme}_proxy")
    if not proxy or _is_loopback(host):
        return None
    exceptions = _variable(environment, "no_proxy").split(",")
    if any(_matches(text.strip().lower(), host, port) for text in exceptions):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        name = f"{place.scheme}_proxy".upper()
        raise ConfigError(f"{name}={proxy}: only HTTP proxies are supported")
    return proxy


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _matches(exception: str, host: str, port: int | None) -> bool:
    """Return whether an entry of NO_PROXY is about a host: a name, an address or a network."""
    if not exception or exception == "*":
        return exception == "*"
    try:
        return ip_address(host) in ip_network(exception, strict=False)
    except ValueError:
        pass  # one of them is a name, or has a port
    name, _, wanted = exception.rpartition(":")
    if name and wanted.isdecimal():
        if int(wanted) != port:
            return False
        exception = name.strip("[]")
    if exception.startswith("*."):
        exception = exception[1:]
    domain = exception.removeprefix(".")
    # ".example.com" is about what is below it only.
    return host.endswith(f".{domain}") or (host == domain and exception == domain)
