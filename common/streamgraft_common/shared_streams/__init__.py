"""Streams between jobs: which exports an import wants, which rows, and whether schemas fit. Pure.

Cloud native Streams, section 6.4. The language has the operators of SPL's subscriptions and filters
on integers, floats, strings and lists.
"""

from streamgraft_common.shared_streams.expressions import Expression, ExpressionError, parse
from streamgraft_common.shared_streams.filters import to_sql
from streamgraft_common.shared_streams.schemas import misfit, read_schema
from streamgraft_common.shared_streams.subscriptions import Properties, check_properties, meets

__all__ = [
    "Expression",
    "ExpressionError",
    "Properties",
    "check_properties",
    "meets",
    "misfit",
    "parse",
    "read_schema",
    "to_sql",
]
