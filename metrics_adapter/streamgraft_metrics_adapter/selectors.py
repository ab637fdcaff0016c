"""Label selectors, in the string form of list calls: `a=b,c!=d,e in (f,g),h notin (i),j,!k`."""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streamgraft_metrics_adapter.status import BadRequestError

_KEY = r"(?:[A-Za-z0-9.-]+/)?[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_EQUALITY = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_EXISTENCE = re.compile(rf"(!?)\s*({_KEY})")
_LENGTH_MAX = 4096
_PART = re.compile(r"(?:[^,(]|\([^)]*\)?)*")
"""Up to the next comma outside of parentheses."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One part of a selector."""

    key: str
    values: frozenset[str] | None
    """The label's value is one of them; None: the label exists."""
    negated: bool
    """Whether the opposite is required."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether these labels meet it; a missing label meets what is negated."""
        found = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return found != self.negated


@dataclass(frozen=True, slots=True)
class Selector:
    """All requirements must hold; without any, everything matches."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether these labels meet all requirements."""
        return all(requirement.matches(labels) for requirement in self.requirements)


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Selector:
    """Return the selector. Raises BadRequestError if it is none."""
    if len(text) > _LENGTH_MAX:
        raise BadRequestError(f"the label selector is longer than {_LENGTH_MAX} characters")
    return Selector(tuple(_requirements(text))) if text.strip() else Selector()


def _parts(text: str) -> Iterator[str]:
    at = 0
    while at <= len(text):
        part = _PART.match(text, at)
        assert part is not None  # it may be empty
        yield part[0]
        at = part.end() + 1


def _requirements(text: str) -> Iterator[Requirement]:
    for part in (part.strip() for part in _parts(text)):
        if match := _EQUALITY.fullmatch(part):
            yield Requirement(match[1], frozenset({match[3]}), match[2] == "!=")
        elif match := _SET.fullmatch(part):
            values = frozenset(value.strip() for value in match[3].split(","))
            yield Requirement(match[1], values, match[2] == "notin")
        elif match := _EXISTENCE.fullmatch(part):
            yield Requirement(match[2], None, match[1] == "!")
        else:
            raise BadRequestError(f"unable to parse the label selector {text!r} at {part!r}")


def label_selector(text: str) -> dict[str, Any] | None:
    """Return a selector as a LabelSelector object; None if everything matches."""
    requirements = parse(text).requirements
    if not requirements:
        return None
    return {"matchExpressions": [_expression(requirement) for requirement in requirements]}


def _expression(requirement: Requirement) -> dict[str, Any]:
    if requirement.values is None:
        operator = "DoesNotExist" if requirement.negated else "Exists"
        return {"key": requirement.key, "operator": operator}
    operator = "NotIn" if requirement.negated else "In"
    return {"key": requirement.key, "operator": operator, "values": sorted(requirement.values)}
