"""Files of cuts that nobody keeps any more: removed by those who see the volume.

The operator may not. Each cut holds on to the state of its moment, so that left over ones fill a
volume within hours. The same goes for a volume with the copies of cuts.
"""

import logging
import shutil
from collections.abc import Iterable
from pathlib import Path

from streamgraft_common import names
from streamgraft_common.resources import Saving

log = logging.getLogger(__name__)

MOST = 20
"""Removed with one cut: a PE has other things to do, and the next cut comes soon."""


def tells_what_is_kept(request: Saving) -> bool:
    """Return whether a request is for a cut, and says which cuts its region keeps. Pure."""
    # One that does not name itself says nothing of those that are kept: an operator of before.
    return request.cut is not None and not request.commit and request.savepoint in request.kept


def earlier(savepoints: Iterable[str], request: Saving) -> list[str]:
    """Return which savepoints are earlier cuts of the consistent region that a request for a cut is
    of, and are kept by nobody: the oldest ones. Pure."""
    if request.cut is None or not tells_what_is_kept(request):
        return []
    region = request.savepoint.removesuffix(names.cut_savepoint("", request.cut))
    numbers = {
        name: number
        for name in savepoints
        if (number := names.cut_number(name, region)) is not None
        and number < request.cut
        and name not in request.kept
    }
    return sorted(numbers, key=lambda name: numbers[name])[:MOST]


def remove_earlier(savepoints: Path, request: Saving) -> None:
    """Remove earlier cuts of the consistent region that a request for a cut is of.

    `savepoints`: the folder with all savepoints of the namespace. What other PEs remove meanwhile,
    or what can't be removed, is no error.
    """
    for name in earlier((folder.name for folder in savepoints.iterdir()), request):
        log.info("cut %s is kept by nobody: its files are removed", name)
        shutil.rmtree(savepoints / name, ignore_errors=True)
