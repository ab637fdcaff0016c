"""The adapter's settings, from the command line."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streamgraft_metrics_adapter.prometheus.server import PrometheusServer

OWN_TARGETS = 'job="streamgraft-metrics-adapter"'


@dataclass(frozen=True)
class Settings:
    """Settings of the adapter, from its command line."""

    kubeconfig: str | None
    """None: $KUBECONFIG, else the pod's own account."""
    prometheus: PrometheusServer
    bind: str
    """Empty: all addresses, of IPv4 and of IPv6."""
    port: int
    tls_cert: Path
    tls_key: Path
    refresh_seconds: float
    window_seconds: float
    """Over which rates and derivatives are taken (the paper: 60); it must hold at least two
    scrapes."""
    metrics_config: Path | None
    own_targets: str
    """Matchers, in PromQL, of the labels by which Prometheus tells the adapter's replicas from all
    others."""

    @property
    def max_age_seconds(self) -> float:
        """Return how old a sample may be.

        A window holds two scrapes or more, so half of it outlives one missed scrape; and what was
        read is served until the next refresh.
        """
        return max(15.0, self.window_seconds / 2 + self.refresh_seconds)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(
        prog="streamgraft_metrics_adapter",
        description="Serve the signals of parallel regions as custom metrics.",
    )
    found.add_argument("--kubeconfig", help="default: $KUBECONFIG, else the pod's account")
    found.add_argument("--prometheus-url", required=True)
    found.add_argument(
        "--prometheus-credentials",
        type=Path,
        metavar="DIR",
        help="a mounted Secret with any of ca.crt; tls.crt and tls.key; token, or username and"
        " password (token and password are read again for each query)",
    )
    found.add_argument(
        "--prometheus-header",
        type=_header,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="sent with each query, as X-Scope-OrgID=team",
    )
    found.add_argument(
        "--bind", default="", help="address to listen at (default: all, of IPv4 and of IPv6)"
    )
    found.add_argument("--port", type=int, default=6443)
    found.add_argument("--tls-cert", type=Path, required=True, help="PEM, read again on change")
    found.add_argument("--tls-key", type=Path, required=True)
    found.add_argument("--refresh-seconds", type=_positive, default=2.0)
    found.add_argument("--window-seconds", type=_positive, default=60.0)
    found.add_argument(
        "--metrics-config",
        type=Path,
        help="further metrics (docs/operate/metrics.md), read on change",
    )
    found.add_argument(
        "--own-targets",
        default=OWN_TARGETS,
        help="PromQL matchers of the labels that Prometheus gives the adapter's own replicas: what"
        " they have learned is taken from no other target (default: %(default)s)",
    )
    return found


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """Return the settings; exits with a usage message if they are wrong."""
    found = vars(parser().parse_args(arguments))
    server = PrometheusServer(
        found.pop("prometheus_url"),
        found.pop("prometheus_credentials"),
        dict(found.pop("prometheus_header")),
    )
    return Settings(prometheus=server, **found)


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z0-9-]+", name) or not value.isprintable():
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    return name, value


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 86_400:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and a day")
    return value
