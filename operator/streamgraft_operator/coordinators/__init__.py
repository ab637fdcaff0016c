"""Coordinators: one serialized writer per kind; everyone else asks it."""

from streamgraft_operator.coordinators.coordinator import Command, Coordinator
from streamgraft_operator.coordinators.coordinators import Coordinators

__all__ = ["Command", "Coordinator", "Coordinators"]
