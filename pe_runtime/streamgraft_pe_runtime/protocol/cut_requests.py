"""Cuts of consistent regions that functions of the application ask for."""

from streamgraft_common.resources import RuntimeStatus


class CutRequests:
    """The last request for each region, of earlier launches too: it may still be waited for."""

    def __init__(self, launch: str) -> None:
        """`launch`: tells ours from each before, and from each time that our pod was this PE's."""
        self._launch = launch
        self._count = 0
        self._ours: dict[str, str] = {}

    def add(self, region: str) -> None:
        """Take in a request: a cut that begins from now on is wanted."""
        self._count += 1
        self._ours[region] = f"{self._launch}.{self._count}"

    def all(self, known: RuntimeStatus | None) -> dict[str, str]:
        """Return what is to be said. `known`: what the API server has of us."""
        return {**(known.cut_requests if known else {}), **self._ours}
