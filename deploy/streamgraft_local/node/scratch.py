"""The folder for temporary files of a pod's containers: what /tmp is to an image.

It lies among the system's temporary files, for its path must be short: programs make sockets in it,
and the path of a socket has 107 characters at most.
"""

import shutil
import tempfile
from pathlib import Path

_LINK = "_tmp"


def scratch_folder(pod: Path) -> Path:
    """Return the temporary folder of the pod with this folder; made if it is not there."""
    link = pod / _LINK
    if not link.exists():
        link.unlink(missing_ok=True)  # the machine may have been started anew
        link.symlink_to(tempfile.mkdtemp(prefix="streamgraft-pod-"))
    return link.readlink()


def remove_scratch(pod: Path) -> None:
    """Remove the temporary folder of a pod with everything in it, if it has one."""
    link = pod / _LINK
    if link.is_symlink():
        shutil.rmtree(link.readlink(), ignore_errors=True)
        link.unlink()
