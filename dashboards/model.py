"""What a dashboard says, without its layout: panels, their queries, units and thresholds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dashboards.identity import legend

RATE = "$__rate_interval"


@dataclass(frozen=True)
class Query:
    """One query and the text of its legend; in a table the title of its values' column."""

    expression: str
    legend: str
    quiet: bool = False
    """Nothing to show is good news, or what a short run may lack: amid a width change, and before
    channels were busy, signals have no value."""


@dataclass(frozen=True)
class Panel:
    """One panel; `unit` is one of Grafana's unit ids."""

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    warn: float | None = None
    """From here on it is orange; below, if `falls`."""
    alarm: float | None = None
    """From here on it is red; below, if `falls`."""
    falls: bool = False
    """Less is worse."""
    least: float | None = None
    """Where more is worse: below, it is red as well."""
    number: bool = False
    """The newest value alone, at the top; else a line over time."""
    table: bool = False
    """A row for each set of labels, with a column for each label and each query that has a title;
    else a line over time."""
    colored: str = ""
    """Of a table: the label whose column has colors."""
    states: Mapping[str, str] = field(default_factory=dict)
    """The colors of what may stand there."""
    leads_to: str = ""
    """Uid of the dashboard that a line leads to, with its labels as variables."""


@dataclass(frozen=True)
class Variable:
    """A choice at the top: the values of a label."""

    name: str
    query: str
    """As `label_values(metric, label)`."""


@dataclass(frozen=True)
class Dashboard:
    """Panels by section, below variables."""

    name: str
    title: str
    description: str
    sections: dict[str, tuple[Panel, ...]] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()

    @property
    def uid(self) -> str:
        """What its address ends in."""
        return f"streamgraft-{self.name}"

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All of them, in order."""
        return tuple(panel for panels in self.sections.values() for panel in panels)


def rate(metric: str, where: str) -> str:
    """Return the rate of a counter."""
    return f"rate({metric}{{{where}}}[{RATE}])"


def quantile(share: float, metric: str, labels: str, where: str) -> str:
    """Return a quantile of a histogram by labels."""
    by = f"{labels}, le" if labels else "le"
    return f"histogram_quantile({share}, sum by ({by}) ({rate(f'{metric}_bucket', where)}))"


def quantiles(metric: str, labels: str, where: str) -> tuple[Query, ...]:
    """Return the queries of the median and the 95th percentile by labels."""
    return tuple(
        Query(quantile(share, metric, labels, where), f"{legend(labels)} {share:.0%}")
        for share in (0.5, 0.95)
    )
