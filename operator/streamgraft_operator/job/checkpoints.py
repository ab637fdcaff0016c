"""What becomes of the checkpoints of a deleted job."""

import asyncio
import shutil
from pathlib import Path

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import key_of
from streamgraft_operator import events
from streamgraft_operator.kit.parsed import job_status


async def remove_checkpoints(root: Path | None, job: Object) -> events.Event | None:
    """Remove them from the operator's volume; return what to tell if some stay."""
    namespace, name = key_of(job)
    folder = f"{namespace}/{name}-{job['metadata']['uid']}"
    began = bool(job_status(job).generation_id)
    if root is None:
        why = "the operator does not see the volume"
        return events.checkpoints_left_over(folder, why) if began else None
    path = root / folder
    try:
        await asyncio.to_thread(shutil.rmtree, path)
    except FileNotFoundError:
        # The folder of a namespace stays: without it this is another volume than the jobs'.
        if began and not await asyncio.to_thread(path.parent.exists):
            return events.checkpoints_left_over(folder, "it is not on the operator's volume")
    except OSError as error:
        return events.checkpoints_left_over(str(path), str(error))
    return None
