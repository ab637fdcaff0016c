"""An API server for the chart."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import control_plane

from streamgraft_local.components.model import Setting


@pytest.fixture
def api_server(tmp_path: Path) -> Iterator[Setting]:
    """etcd and an API server in which nothing of ours is installed."""
    with control_plane.api_server("chart", tmp_path) as (setting, _):
        yield setting
