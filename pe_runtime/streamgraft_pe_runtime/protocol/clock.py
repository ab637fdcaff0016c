"""The time as resources have it."""

import time

from streamgraft_common.timestamps import to_rfc3339


def now() -> str:
    """Return the time as RFC 3339 with milliseconds."""
    return to_rfc3339(time.time())
