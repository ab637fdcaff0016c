"""Spark's Python daemon, which has imported beforehand what its workers need.

Workers are forked from it, and end after a minute without work. Each would import the same modules
in the first batch that it gets, which takes half a second of CPU, just when records wait.
"""

from contextlib import suppress
from importlib import import_module

from pyspark import daemon

NEEDED = ("pyarrow", "pandas", "streamgraft")

if __name__ == "__main__":
    for name in NEEDED:
        with suppress(ImportError):  # an image may do without
            import_module(name)
    daemon.manager()
