"""Submission-time values on their way from a driver to its Python workers.

Spark sends a function of a module that can be imported by its name alone. So a worker imports the
application anew, and the values of its parameters come by the environment.
"""

import json
import os
from collections.abc import Mapping

VARIABLE = "STREAMGRAFT_PARAMETERS"


def encoded(application: str, values: Mapping[str, str]) -> str:
    """Return what the variable has for the workers of an application."""
    return json.dumps({"application": application, "values": dict(values)}, sort_keys=True)


def given(application: str) -> dict[str, str]:
    """Return the values that this process was given for an application; none in a driver."""
    found = json.loads(os.environ.get(VARIABLE, "{}"))
    return dict(found["values"]) if found.get("application") == application else {}
