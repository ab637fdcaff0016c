"""The pipeline as a whole."""

from collections.abc import Mapping

from streamgraft_common.adl import Adl
from streamgraft_operator.graph.model import JobContext, Topology


def plan(adl: Adl, context: JobContext, widths: Mapping[str, int]) -> Topology:
    """Return the topology of a job, with regions as wide as `widths` says (by region name).

    A region that is not in `widths` has its own start width. Raises GraphError.
    """
    raise NotImplementedError
