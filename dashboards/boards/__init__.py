"""All dashboards."""

from dashboards.boards.adapter_health import ADAPTER
from dashboards.boards.decisions import DECISIONS
from dashboards.boards.elements import ELEMENTS
from dashboards.boards.jobs import JOBS
from dashboards.boards.operator_health import OPERATOR
from dashboards.boards.regions import REGIONS

__all__ = ["DASHBOARDS", "REGIONS"]

DASHBOARDS = (JOBS, REGIONS, ELEMENTS, DECISIONS, OPERATOR, ADAPTER)
