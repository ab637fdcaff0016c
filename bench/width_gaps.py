"""What width changes cost, computed from what came out of a region and when. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from bench import report


@dataclass(frozen=True)
class Change:
    """What one width change cost. Times in seconds."""

    from_width: int
    to_width: int
    serving: float
    """From the request to the new width serving."""
    steady: Mapping[int, float]
    """Longest gap in the output in as long a time just before, by key group; empty if not known."""
    gaps: Mapping[int, float]
    """Longest gap in the output during the change, by key group."""
    affected: frozenset[int]
    """Key groups that changed their channel, or stayed in one that gave or took some."""
    latency: float
    """99th percentile of the way of a record through the job, in the 10 s from the request on."""
    restarted: int
    """Pods of channels that stay, and of neighbours, that are not what they were before."""
    state_bytes: int
    """Size of the state that changed hands."""

    @property
    def moved_gaps(self) -> list[float]:
        """Gaps of the affected groups."""
        return [gap for group, gap in self.gaps.items() if group in self.affected]

    @property
    def added_gaps(self) -> list[float]:
        """How much longer the gaps of affected groups were than those just before."""
        return [self.gaps[group] - self.steady[group] for group in sorted(self.affected)]

    @property
    def other_gaps(self) -> list[float]:
        """Gaps of the groups of other channels."""
        return [gap for group, gap in self.gaps.items() if group not in self.affected]

    @property
    def other_gap_ratios(self) -> list[float]:
        """How many times as long these were as those just before."""
        others = sorted(self.gaps.keys() - self.affected)
        return [self.gaps[group] / self.steady[group] for group in others]


@dataclass(frozen=True)
class Result:
    """What a case showed."""

    changes: Sequence[Change]
    lost: int
    duplicated: int
    out_of_order: int
    neighbour_restarts: int
    by_savepoint: Sequence[Change] = ()
    """The same region with `strategy: savepoint`."""

    def figures(self) -> dict[str, float]:
        """Return the figures of the case; gaps in milliseconds."""
        changes = self.changes
        gaps = {
            "gap": [gap for change in changes for gap in change.gaps.values()],
            "added_gap": [gap for change in changes for gap in change.added_gaps],
            "moved_gap": [gap for change in changes for gap in change.moved_gaps],
            "other_gap": [gap for change in changes for gap in change.other_gaps],
            "steady_gap": [gap for change in changes for gap in change.steady.values()],
        }
        return {
            **{
                f"{name}_ms_p{share}": _milliseconds(values, share / 100)
                for name, values in gaps.items()
                for share in (50, 95)
                if values
            },
            **self._ratio(),
            "latency_ms_p99": round(max(change.latency for change in changes) * 1000, 1),
            "serving_s_p50": round(report.percentile([item.serving for item in changes], 0.5), 2),
            "serving_s_max": round(max(item.serving for item in changes), 2),
            "state_mb_moved": round(sum(change.state_bytes for change in changes) / 1e6, 1),
            "pods_restarted": sum(change.restarted for change in changes),
            "lost": self.lost,
            "duplicated": self.duplicated,
            "out_of_order": self.out_of_order,
            "neighbour_restarts": self.neighbour_restarts,
            **self._savepoint_figures(),
        }

    def _ratio(self) -> dict[str, float]:
        ratios = [ratio for change in self.changes for ratio in change.other_gap_ratios]
        return {"other_gap_ratio_p50": round(report.percentile(ratios, 0.5), 2)} if ratios else {}

    def _savepoint_figures(self) -> dict[str, float]:
        gaps = [gap for change in self.by_savepoint for gap in change.gaps.values()]
        if not gaps:
            return {}
        serving = [change.serving for change in self.by_savepoint]
        return {
            "savepoint_gap_ms_p50": _milliseconds(gaps, 0.5),
            "savepoint_gap_ms_p95": _milliseconds(gaps, 0.95),
            "savepoint_serving_s_p50": round(report.percentile(serving, 0.5), 2),
        }


def table(results: Mapping[str, Result]) -> Table:
    """Return one line per change."""
    shown = Table(title="longest gap in the output of a key group, ms", title_justify="left")
    for column in (
        *("case", "width", "affected: median", "p95", "max", "others: max", "before: max"),
        *("p99 latency ms", "serving s", "restarts", "state MB"),
    ):
        shown.add_column(column, justify="right")
    for case, result in results.items():
        lines = [(case, change) for change in result.changes]
        lines += [(f"{case}, savepoint", change) for change in result.by_savepoint]
        for label, change in lines:
            moved = change.moved_gaps
            shown.add_row(
                label,
                f"{change.from_width}→{change.to_width}",
                *(f"{_milliseconds(moved, share):.0f}" for share in (0.5, 0.95, 1.0)),
                f"{_milliseconds(change.other_gaps, 1.0):.0f}" if change.other_gaps else "",
                f"{_milliseconds(change.steady.values(), 1.0):.0f}" if change.steady else "",
                f"{change.latency * 1000:.0f}",
                f"{change.serving:.1f}",
                str(change.restarted),
                f"{change.state_bytes / 1e6:.1f}",
            )
    return shown


def _milliseconds(seconds: Iterable[float], share: float) -> float:
    return round(report.percentile(list(seconds), share) * 1000, 1)
