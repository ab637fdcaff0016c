"""The command `streamgraft-adapter`: tools for configurations of metrics."""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from streamgraft_metrics_adapter.prometheus.server import PrometheusServer
from streamgraft_metrics_adapter.prometheus.source import PrometheusSource, SourceError
from streamgraft_metrics_adapter.rules.configuration import (
    BUILT_IN,
    ConfigurationError,
    MetricRule,
    merged,
    read,
)
from streamgraft_metrics_adapter.rules.migration import migrated


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    parser = argparse.ArgumentParser(prog="streamgraft-adapter", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    migrate = commands.add_parser(
        "migrate",
        help="print a configuration of prometheus-adapter in our form; exit code 1 if parts of it"
        " have no counterpart",
    )
    migrate.add_argument("file", type=Path)
    check = commands.add_parser("check", help="say whether a configuration is good")
    check.add_argument("file", type=Path)
    check.add_argument("--prometheus-url", help="also ask this server every query once")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "migrate":
            return _migrate(chosen.file)
        return _check(chosen.file, chosen.prometheus_url)
    except (ConfigurationError, OSError, ValueError, yaml.YAMLError) as error:
        print(error, file=sys.stderr)
        return 2


def _migrate(file: Path) -> int:
    document = yaml.safe_load(file.read_text())
    if not isinstance(document, dict):
        raise ValueError(f"{file} is no configuration of prometheus-adapter")
    result = migrated(document)
    print(yaml.safe_dump({"metrics": result.metrics}, sort_keys=False, width=100), end="")
    for problem in result.problems:
        print(f"not translated: {problem}", file=sys.stderr)
    return 1 if result.problems else 0


def _check(file: Path, prometheus_url: str | None) -> int:
    rules = read(file)
    merged(read(BUILT_IN), rules)
    problems = asyncio.run(_refused(rules, prometheus_url)) if prometheus_url else []
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"{file}: {len(rules)} metrics are good")
    return 1 if problems else 0


async def _refused(rules: Iterable[MetricRule], prometheus_url: str) -> list[str]:
    """Return what Prometheus says against the queries."""
    problems: list[str] = []
    prometheus = PrometheusSource(PrometheusServer(prometheus_url))
    for rule in rules:
        try:
            list(await prometheus.rows(rule.name, rule.promql(), time.time()))
        except SourceError as error:
            problems.append(str(error))
    return problems
