"""What is plotted of a run."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from examples.flights.observation import Sample
from streamgraft_autoscaler import plot
from streamgraft_autoscaler.plot import Line, Panel


def panels(samples: Sequence[Sample]) -> list[Panel]:
    """Return what is plotted of a run."""

    def values(of: Callable[[Sample], float | None]) -> list[float | None]:
        return [of(sample) for sample in samples]

    return [
        Panel("Flights/s sent", [Line("sent", "#1f77b4", arrivals(samples))]),
        Panel(
            "Channels",
            [
                Line("demand", "#bbbbbb", values(lambda sample: sample.demand)),
                Line("wanted by the HPA", "#ff7f0e", values(lambda s: s.width_wanted), True),
                Line("serving", "#2ca02c", values(lambda s: s.width_serving), True),
            ],
        ),
        Panel("Flights waiting", [Line("waiting", "#d62728", values(lambda s: s.waiting))]),
    ]


def arrivals(samples: Sequence[Sample]) -> list[float | None]:
    """Return the flights per second sent between each sample and the one before."""
    rates: list[float | None] = [None] if samples else []
    for before, after in pairwise(samples):
        span = after.seconds - before.seconds
        rates.append((after.sent - before.sent) / span if span > 0 else None)
    return rates


def text_plot(samples: Sequence[Sample]) -> str:
    """Return the panels as rows of bars, with the largest value of each."""
    return plot.text_plot(panels(samples))


def svg_plot(samples: Sequence[Sample]) -> str:
    """Return the panels as an SVG picture; the time axis is in seconds."""
    return plot.svg_plot(panels(samples), [sample.seconds for sample in samples])
