"""What becomes of the checkpoints of a deleted job."""

import shutil
from functools import partial
from pathlib import Path

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_operator import events
from streamgraft_operator.kit.parsed import job_status
from streamgraft_operator.kit.volume import Volume

PURPOSE = "checkpoints"


async def remove_checkpoints(volume: Volume, job: Object) -> events.Event | None:
    """Remove them from the operator's volume; return what to tell if some stay. Raises UnderWay."""
    namespace, name = key_of(job)
    folder = f"{namespace}/{name}-{job['metadata']['uid']}"
    began = bool(job_status(job).generation_id)
    if volume.root is None:
        why = "the operator does not see the volume"
        return events.checkpoints_left_over(folder, why) if began else None
    return await volume.ask(job, PURPOSE, partial(_removed, volume.root, folder, began))


def _removed(root: Path, folder: str, began: bool) -> events.Event | None:
    """Remove a folder. Blocks."""
    path = root / folder
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        # The folder of a namespace stays: without it this is another volume than the jobs'.
        if began and not path.parent.exists():
            return events.checkpoints_left_over(folder, "it is not on the operator's volume")
    except OSError as error:
        return events.checkpoints_left_over(str(path), str(error))
    return None
