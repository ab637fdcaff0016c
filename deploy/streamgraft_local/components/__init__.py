"""The components of a cluster: how each is started and how one sees that it serves."""

from streamgraft_local.components.all import components
from streamgraft_local.components.model import Component

__all__ = ["Component", "components"]
