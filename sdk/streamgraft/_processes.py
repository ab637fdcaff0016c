"""In which process the application's code runs."""

import sys


def is_worker() -> bool:
    """Return whether this is a Python process in which Spark runs tasks."""
    if "pyspark" not in sys.modules:
        return False
    from pyspark import TaskContext

    return TaskContext.get() is not None
