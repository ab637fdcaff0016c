"""Which cuts of a consistent region stay. Pure."""

from streamgraft_common.resources import ConsistentRegionStatus, Cut
from streamgraft_operator.consistent_region.view import ConsistentRegionView, CutView


def is_whole(cut: Cut) -> bool:
    """Return whether a region may go back to a cut."""
    return not cut.damaged and not cut.unclean_shards


def last_cuts(cuts: list[Cut], most: int) -> list[Cut]:
    """Return the cuts to keep: the last ones, and if none of them is whole, the last that is."""
    kept = cuts[-most:]
    if any(map(is_whole, kept)):
        return kept
    return [*[cut for cut in cuts[:-most] if is_whole(cut)][-1:], *kept]


def superfluous(view: ConsistentRegionView, status: ConsistentRegionStatus) -> list[CutView]:
    """Return the cuts that nobody needs once the region has this status."""
    kept = {cut.number for cut in status.cuts} | _unknown(view, status)
    if status.state == "Draining":
        kept.add(status.sequence_id)
    return [cut for number, cut in sorted(view.cuts.items()) if number not in kept]


def _unknown(view: ConsistentRegionView, status: ConsistentRegionStatus) -> set[int]:
    """Return the cuts from before the status of a region was lost, as it was deleted and made anew
    or came back from a backup: until it has a whole one again, nothing else has what it had done.

    As many as it keeps of its own. The numbers of its own are above theirs.
    """
    if any(map(is_whole, status.cuts)):
        return set()
    whole = (number for number, cut in view.cuts.items() if _has_all(cut))
    return set(sorted(whole)[-view.spec.retained_cuts :])


def _has_all(cut: CutView) -> bool:
    return cut.status.phase == "Completed" and not cut.status.unclean_shards
