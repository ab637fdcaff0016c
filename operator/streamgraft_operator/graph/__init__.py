"""From an application description to PEs: the pure part of job submission.

Steps 1 to 5 of job submission (cloud native Streams, section 6.1), one module each: `logical`
(logical model), `transforms` (dead operators, parallel expansion), `topology` (ids and names),
`fusion`, `ports`, `metadata`. `diff` is the diff of section 6.3 and `assignment` maps the shards
of a region to its channels.
"""

from streamgraft_common.content import Change, Content, classify
from streamgraft_operator.graph.assignment import assign
from streamgraft_operator.graph.diff import (
    changed_fields,
    content_of,
    diff,
    graph_content,
    with_settings,
)
from streamgraft_operator.graph.model import (
    GraphError,
    JobContext,
    PlannedPe,
    PlannedRegion,
    PlannedTopic,
    Topology,
)
from streamgraft_operator.graph.pipeline import topology_of
from streamgraft_operator.graph.sizing import Sizing
from streamgraft_operator.graph.slots import counted_topics
from streamgraft_operator.graph.submission import Submission, check_region

__all__ = [
    "Change",
    "Content",
    "GraphError",
    "JobContext",
    "PlannedPe",
    "PlannedRegion",
    "PlannedTopic",
    "Sizing",
    "Submission",
    "Topology",
    "assign",
    "changed_fields",
    "check_region",
    "classify",
    "content_of",
    "counted_topics",
    "diff",
    "graph_content",
    "topology_of",
    "with_settings",
]
