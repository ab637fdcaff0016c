"""Leadership: of several replicas of the operator one writes, the others wait.

`lease` is the pure part, `elector` talks to the API server, `fence` keeps a replica that lost the
lease from writing.
"""

from streamgraft_operator.kit.leadership.elector import Elector
from streamgraft_operator.kit.leadership.fence import FencedClient, NotLeading, may_write
from streamgraft_operator.kit.leadership.lease import Term

__all__ = ["Elector", "FencedClient", "NotLeading", "Term", "may_write"]
