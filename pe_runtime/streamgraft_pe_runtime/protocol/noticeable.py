"""What of a PE's loads is worth writing into its status. Pure."""

from collections.abc import Mapping

from streamgraft_pe_runtime.protocol.work import Load


class Noticeable:
    """Loads as they were written last, and whether the PE is behind."""

    def __init__(self) -> None:
        self.behind = False
        """Said at once, and taken back at the second look in a row that finds it otherwise."""
        self._before = False
        self._said: object = None

    def look(self, loads: Mapping[int, Load], *, behind: bool) -> bool:
        """Take in loads by shard, and whether the PE is behind; return whether to write them."""
        self.behind, self._before = behind or self._before, behind
        rough = {
            shard: (load.busy and round(load.busy, 1), load.lag > 0)
            for shard, load in loads.items()
        }
        before, self._said = self._said, (rough, self.behind)
        return self._said != before
