"""Where bundles are fetched from: what a Secret says to which host, and which addresses are open.

A user names the address, and the operator goes there with its own place in the network. So private
addresses, those of the cloud's metadata among them, are closed unless the installation opens them,
and what is asked is the very address that was checked.
"""

import asyncio
import base64
import binascii
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from streamgraft_common.bundle import BundleError

_NAT64 = IPv6Network("64:ff9b::/96")
_KEYS = ("token", "username", "password", "hosts")


class FetchFailed(BundleError):
    """The source did not give the bundle; the message says what it answered."""

    reason = "BundleFetchFailed"


def too_large(where: str, largest: int) -> FetchFailed:
    """Return the error about a bundle of more than `largest` bytes."""
    return FetchFailed(
        f"{where} has more than {largest // 1000} kB: put the bundle on a volume that operator and"
        " PEs share, and name it in bundle.file"
    )


@dataclass(frozen=True)
class Credentials:
    """What a Secret says to which hosts: a token, or a user name and a password."""

    hosts: frozenset[str]
    token: str = ""
    username: str = ""
    password: str = ""

    @classmethod
    def of(cls, name: str, data: Mapping[str, str]) -> "Credentials":
        """Return those in the data (base64) of the Secret of that name. Raises FetchFailed."""
        try:
            found = {
                key: base64.b64decode(data[key]).decode().strip() for key in _KEYS if key in data
            }
        except (binascii.Error, UnicodeDecodeError) as error:
            raise FetchFailed(f"Secret {name} holds no text: {error}") from error
        have = ", ".join(sorted(data)) or "none"
        if not ("token" in found or {"username", "password"} <= found.keys()):
            raise FetchFailed(
                f"Secret {name} needs the key token, or username and password (it has: {have})"
            )
        if any("\n" in value or "\r" in value for key, value in found.items() if key != "hosts"):
            raise FetchFailed(f"Secret {name}: token, username and password are one line each")
        hosts = frozenset(found.pop("hosts", "").lower().replace(",", " ").split())
        if not hosts:
            raise FetchFailed(
                f"Secret {name} needs the key hosts, with the names of the hosts that it may be"
                f" sent to, as git.example.com (it has: {have})"
            )
        return cls(hosts, **found)

    def check(self, host: str) -> None:
        """Raise FetchFailed if the Secret is not meant for a host."""
        if host not in self.hosts:
            listed = ", ".join(sorted(self.hosts))
            raise FetchFailed(
                f"the Secret is for {listed}, not for {host}: add it to its key hosts"
            )

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


@dataclass(frozen=True)
class Address:
    """A server, and where it is."""

    host: str
    port: int
    ips: tuple[str, ...]


class Networks:
    """The addresses that bundles may come from; `opened`: private networks, as 10.1.0.0/16."""

    def __init__(self, opened: Sequence[str]) -> None:
        self._opened = [ip_network(item) for item in opened]

    async def resolve(self, url: str) -> Address:
        """Return where the server of a URL is. Raises FetchFailed."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise FetchFailed(f"{url} is no URL: {error}") from error
        if parts.scheme not in ("http", "https") or not host:
            raise FetchFailed(f"{url} is no URL of http or https")
        port = port or (443 if parts.scheme == "https" else 80)
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise FetchFailed(f"{url} can't be read: {host} is not known ({error})") from error
        ips = tuple(dict.fromkeys(str(item[4][0]) for item in found))
        for ip in ips:
            self._check(host, ip)
        return Address(host, port, ips)

    def _check(self, host: str, text: str) -> None:
        ip = _plain(ip_address(text.partition("%")[0]))
        if ip.is_global and not ip.is_multicast:
            return
        if not any(ip in network for network in self._opened):
            raise FetchFailed(
                f"{host} is at {ip}, a private address: bundles come from there only if the"
                " installation says so (the operator's --bundle-network)"
            )


def _plain(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 one stands for, or the address itself."""
    if isinstance(ip, IPv4Address):
        return ip
    if ip in _NAT64:
        return IPv4Address(ip.packed[-4:])
    return ip.ipv4_mapped or ip.sixtofour or ip
