"""The diff of a new topology against the PEs that exist (section 6.3, step 3).

The graft and the re-indexing that follow it in the paper need no code here: a PE id never depends
on a width, so the new topology already has every untouched PE under its old id.
"""

from collections.abc import Mapping

from streamgraft_operator.graph.model import Diff, Topology


def diff(old: Mapping[int, str], new: Topology) -> Diff:
    """Compare existing PEs (id → content id) with a topology."""
    wanted = {pe.pe_id: pe.content_id for pe in new.pes}
    both = sorted(old.keys() & wanted.keys())
    return Diff(
        added=tuple(sorted(wanted.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - wanted.keys())),
        changed=tuple(pe for pe in both if old[pe] != wanted[pe]),
        identical=tuple(pe for pe in both if old[pe] == wanted[pe]),
    )
