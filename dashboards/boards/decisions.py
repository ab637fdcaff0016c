"""Why regions have the width that they have: signals, what was learned, width changes."""

from dashboards.identity import BY_REGION, BY_SIGNAL, channels, legend
from dashboards.model import RATE, Dashboard, Panel, Query
from dashboards.variables import IN_REGION, JOB, NAMESPACE, OF_REGION, REGION

_REGION, _SIGNAL = legend(BY_REGION), legend(BY_SIGNAL)


def _signal(metric: str) -> str:
    """Return a signal as served: replicas of the adapter serve the same."""
    return f'max by ({BY_SIGNAL}) (streamgraft_region_signal{{metric="{metric}", {OF_REGION}}})'


def _changes(metric: str) -> str:
    return f"sum by ({BY_REGION}) (increase({metric}{{{IN_REGION}}}[{RATE}]))"


_SIGNALS = (
    Panel(
        "Demand",
        "Channels that the load needs, as the HPA reads it, channels that serve, and how many there"
        " may be.",
        "short",
        (
            Query(_signal("demand"), f"{_SIGNAL} needs", quiet=True),
            Query(channels(f"streamgraft_pe_shards{{{IN_REGION}}} > 0"), f"{_REGION} serve"),
            Query(
                f'max by ({BY_REGION}) (streamgraft_region_width{{kind="largest", {IN_REGION}}})',
                f"{_REGION} at most",
            ),
        ),
    ),
    Panel(
        "Relative change of the lag",
        "1 while the region keeps up or is idle; above 1 it falls behind (the paper's Eq. 3).",
        "short",
        (Query(_signal("relative_lag_change_rate"), _SIGNAL, quiet=True),),
        warn=1.1,
        alarm=1.5,
    ),
    Panel(
        "Utilization, as served",
        "What the HPA reads.",
        "percentunit",
        (Query(_signal("utilization"), _SIGNAL),),
        warn=0.8,
        alarm=0.95,
    ),
    Panel(
        "Signals without a value",
        "The HPA holds the width while it asks for one of these. docs/operate/runbook.md.",
        "short",
        (
            Query(
                f"count by ({BY_SIGNAL}, reason) (max by ({BY_SIGNAL}, metric, reason)"
                f" (streamgraft_region_signal_unavailable{{{OF_REGION}}}))",
                f"{_SIGNAL} {{{{reason}}}}",
                quiet=True,
            ),
        ),
        warn=1,
    ),
)

_LEARNED = (
    Panel(
        "What a channel can process",
        "Records per busy second, by load band, as learned.",
        "cps",
        (
            Query(
                f"max by ({BY_REGION}, stage, band) (streamgraft_learned_records{{{IN_REGION}}}"
                f" / streamgraft_learned_busy_seconds{{{IN_REGION}}})",
                f"{_REGION} stage {{{{stage}}}} band {{{{band}}}}",
                quiet=True,
            ),
        ),
    ),
    Panel(
        "Longest pause of a width change",
        "Of any shard, by when the change was asked for (Unix time).",
        "s",
        (
            Query(
                f"max by ({BY_REGION}, changed_at)"
                f" (streamgraft_learned_pause_seconds{{{IN_REGION}}})",
                f"{_REGION} change at {{{{changed_at}}}}",
                quiet=True,
            ),
        ),
        warn=1,
        alarm=5,
    ),
)

_CHANGES = (
    Panel(
        "Width changes",
        "Begun, by region.",
        "short",
        (Query(_changes("streamgraft_operator_width_changes_total"), _REGION, quiet=True),),
    ),
    Panel(
        "Width changes taken back",
        "They were not healthy in time.",
        "short",
        (Query(_changes("streamgraft_operator_rollbacks_total"), _REGION, quiet=True),),
        warn=1,
    ),
)

DECISIONS = Dashboard(
    "decisions",
    "Streamgraft: decisions",
    "Why regions have the width that they have.",
    {"Signals": _SIGNALS, "What was learned": _LEARNED, "Width changes": _CHANGES},
    (NAMESPACE, JOB, REGION),
)
