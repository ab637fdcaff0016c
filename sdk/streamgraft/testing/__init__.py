"""Tests of applications: operators on given rows, in seconds and without a cluster.

A pytest plugin (`streamgraft.testing.plugin`) has fixtures for it: `graph` runs operators on rows,
`live_job` runs the whole application on the embedded environment.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamgraft.testing._graph_test import GraphTest
    from streamgraft.testing._results import Results, Rows
else:  # every pytest of an installation imports this with the plugin: Spark must not come along
    _HOMES = {"GraphTest": "_graph_test", "Results": "_results", "Rows": "_results"}

    def __getattr__(name):
        """Import what is asked for."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


__all__ = ["GraphTest", "Results", "Rows"]
