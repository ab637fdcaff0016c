"""Tests of applications: operators on given rows, in seconds and without a cluster.

A pytest plugin (`streamgraft.testing.plugin`) has fixtures for it: `graph` runs operators on rows,
`live_job` runs the whole application on the embedded environment.
"""

from streamgraft.testing._graph_test import GraphTest
from streamgraft.testing._results import Results, Rows

__all__ = ["GraphTest", "Results", "Rows"]
