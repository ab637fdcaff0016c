"""The partition of operators that fusion makes, and what forbids to join two of its groups.

Sets of operators are bits of integers, and each group knows what is above and below it. So the
question whether two may be joined costs the same in large graphs as in small ones, but for state:
that takes a look at the operators behind it in both groups.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from streamgraft_common.adl import Operator
from streamgraft_operator.graph.logical import LogicalModel

WRITERS = ("kafka-sink", "export")
"""Kinds that write their input to a topic."""
Bits = int
"""A set of operators (or of hosts, or tokens): the bits of their numbers."""


@dataclass
class Group:
    """Operators that share a PE."""

    operators: list[int]
    """Numbers, ascending: they are in topological order."""
    members: Bits
    readers: Bits
    """Those that read what its members make, within it too."""
    above: Bits
    """Those of all groups from which a path leads to it."""
    below: Bits
    """Those of all groups to which a path leads from it."""
    place: tuple[str | None, int]
    """Region and fusion group, the same for all."""
    hosts: Bits
    """Hosts and host pools that are asked for."""
    apart: Bits
    """Exlocation tokens."""
    cuts: Bits
    """Consistent regions."""


class Groups:
    """The groups, begun with one for each operator of a model without dead ones."""

    def __init__(self, model: LogicalModel) -> None:
        self._operators = list(model.operators.values())
        self._number = {operator.name: n for n, operator in enumerate(self._operators)}
        self._model = model
        self._writers = self._bits(op for op in self._operators if op.kind in WRITERS)
        self._sinks = self._bits(op for op in self._operators if op.kind == "sink")
        self._stateful = self._bits(op for op in self._operators if op.stateful)
        self._groups = self._begun()
        self._of = list(self._groups)
        self._next = len(self._groups)

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self._groups)

    def of(self, operator: Operator) -> int:
        """Return the id of an operator's group. What is joined has a new one."""
        return self._of[self._number[operator.name]]

    def region(self, group: int) -> str | None:
        """Return the region that a group is in."""
        return self._groups[group].place[0]

    def size(self, first: int, second: int) -> int:
        """Return how many operators two groups have together."""
        return len(self._groups[first].operators) + len(self._groups[second].operators)

    def sorted(self) -> Iterator[list[Operator]]:
        """Yield the groups in topological order; of those that are ready the one with the first
        operator goes first."""
        behind = {
            key: {self._of[number] for number in _numbers(group.readers & ~group.members)}
            for key, group in self._groups.items()
        }
        awaited = Counter(key for keys in behind.values() for key in keys)
        ready = [(group.operators[0], key) for key, group in self._groups.items()]
        ready = [item for item in ready if not awaited[item[1]]]
        heapq.heapify(ready)
        while ready:
            _, first = heapq.heappop(ready)
            yield [self._operators[number] for number in self._groups[first].operators]
            for key in behind[first]:
                awaited[key] -= 1
                if not awaited[key]:
                    heapq.heappush(ready, (self._groups[key].operators[0], key))

    def join(self, first: int, second: int) -> int:
        """Make one group of two, and return its id."""
        one, other = self._groups.pop(first), self._groups.pop(second)
        members = one.members | other.members
        joined = Group(
            operators=sorted(one.operators + other.operators),
            members=members,
            readers=one.readers | other.readers,
            above=(one.above | other.above) & ~members,
            below=(one.below | other.below) & ~members,
            place=one.place,
            hosts=one.hosts | other.hosts,
            apart=one.apart | other.apart,
            cuts=one.cuts | other.cuts,
        )
        # What is above or below both knows all that is new.
        above, below = (one.above ^ other.above) & ~members, (one.below ^ other.below) & ~members
        for group in self._groups.values() if above | below else ():
            if group.members & above:
                group.below |= members | joined.below
            elif group.members & below:
                group.above |= members | joined.above
        key, self._next = self._next, self._next + 1
        self._groups[key] = joined
        for number in joined.operators:
            self._of[number] = key
        return key

    def joinable(self, first: int, second: int) -> bool:
        """Return whether two groups may be made one."""
        return not self.excluded(first, second) and not self.repeats_state(first, second)

    def excluded(self, first: int, second: int) -> bool:
        """Return whether a rule that is not about state keeps two groups apart as they are. Others
        that are joined don't change that."""
        one, other = self._groups[first], self._groups[second]
        if one is other or one.place != other.place or one.apart & other.apart:
            return True
        if (one.hosts | other.hosts).bit_count() > 1:
            return True
        if (one.cuts | other.cuts).bit_count() > 1:  # a PE is cut, commits and goes back as a whole
            return True
        members = one.members | other.members
        if sinks := (members & self._sinks).bit_count():
            outputs = (one.readers | other.readers) & ~members | members & self._writers
            if sinks > 1 or outputs:
                return True
        # A path that leaves the group and comes back.
        return bool((one.readers & other.above | other.readers & one.above) & ~members)

    def repeats_state(self, first: int, second: int) -> bool:
        """Return whether several paths lead from a stateful operator to the outputs of two groups
        together. If so, they do in all groups that contain these.

        A stream that is written counts as one path, however many topics it, or parts of it behind
        a split, go to: they take one pass over its rows.
        """
        one, other = self._groups[first], self._groups[second]
        members = one.members | other.members
        if not (stateful := members & self._stateful):
            return False
        uppermost = (stateful & -stateful).bit_length() - 1
        paths: dict[str, int] = {}
        for number in sorted(one.operators + other.operators, reverse=True):
            if number < uppermost:
                break
            operator = self._operators[number]
            if operator.kind == "split":
                continue
            found = int(operator.kind == "sink")
            found += sum(self._paths(members, stream, paths) for stream in operator.outputs)
            if operator.stateful and found > 1:
                return True
            paths[operator.name] = min(found, 2)  # more is not asked for, and can be very many
        return False

    def _paths(self, members: Bits, stream: str, paths: dict[str, int]) -> int:
        """Return how many paths lead from a stream to the outputs of a group."""
        found, leaves = 0, False
        parts = [stream]
        for part in parts:  # it grows by what splits of the group make of it
            for name in self._model.consumers[part]:
                reader = self._model.operators[name]
                inside = members >> self._number[name] & 1
                leaves |= not inside or reader.kind in WRITERS
                if inside and reader.kind == "split":
                    parts += reader.outputs
                elif inside:
                    found += reader.inputs.count(part) * paths[name]
        return found + leaves

    def _bits(self, operators: Iterable[Operator]) -> Bits:
        return sum(1 << self._number[operator.name] for operator in operators)

    def _begun(self) -> dict[int, Group]:
        """Return a group for each operator."""
        hosts: dict[object, int] = {}
        tokens: dict[str, int] = {}
        regions: dict[str, int] = {}
        found: dict[int, Group] = {}
        for number, operator in enumerate(self._operators):
            place = operator.placement
            host = (place.host, place.host_pool)
            cut_by = self._model.cut_by.get(operator.name)
            found[number] = Group(
                operators=[number],
                members=1 << number,
                readers=0,
                above=0,
                below=0,
                place=(operator.region, operator.fusion_group),
                hosts=1 << hosts.setdefault(host, len(hosts)) if any(host) else 0,
                apart=sum(1 << tokens.setdefault(t, len(tokens)) for t in {*place.exlocate}),
                cuts=1 << regions.setdefault(cut_by, len(regions)) if cut_by else 0,
            )
            for name in self._model.upstream(operator.name):
                producer = found[self._number[name]]
                producer.readers |= 1 << number
                found[number].above |= producer.members | producer.above
        for group in reversed(found.values()):
            for number in _numbers(group.readers):
                group.below |= found[number].members | found[number].below
        return found


def _numbers(bits: Bits) -> Iterator[int]:
    """Yield the numbers of a set."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
