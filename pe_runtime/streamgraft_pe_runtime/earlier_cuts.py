"""Files of cuts that nobody keeps any more: removed by those who see the volume.

The operator may not. Each cut holds on to the state of its moment, so that left over ones fill a
volume within hours.
"""

import logging
import shutil
from pathlib import Path

from streamgraft_common import names
from streamgraft_common.resources import Saving

log = logging.getLogger(__name__)

MOST = 20
"""Removed with one cut: a PE has other things to do, and the next cut comes soon."""


def remove_earlier(savepoints: Path, request: Saving) -> None:
    """Remove earlier cuts of the consistent region that a request for a cut is of.

    `savepoints`: the folder with all savepoints of the namespace. What other PEs remove meanwhile,
    or what can't be removed, is no error.
    """
    # One that does not name itself says nothing of those that are kept: an operator of before.
    if request.cut is None or request.commit or request.savepoint not in request.kept:
        return
    region = request.savepoint.removesuffix(names.cut_savepoint("", request.cut))
    numbers = {
        folder: number
        for folder in savepoints.iterdir()
        if (number := names.cut_number(folder.name, region)) is not None
        and number < request.cut
        and folder.name not in request.kept
    }
    for folder in sorted(numbers, key=lambda folder: numbers[folder])[:MOST]:
        log.info("cut %s is kept by nobody: its files are removed", folder.name)
        shutil.rmtree(folder, ignore_errors=True)
