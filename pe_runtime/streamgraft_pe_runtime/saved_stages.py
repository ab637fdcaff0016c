"""What the folder of a savepoint on the volume says of itself."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamgraft_common import names
from streamgraft_common.resources import SavedStage
from streamgraft_common.restore import united_state

STAGE_FILE = "stage.json"
SHARD_FILE = "shard.json"


def saved_stages(folder: Path) -> list[SavedStage]:
    """Return the stages that a savepoint's folder holds."""
    found, uid = [], uid_of(folder)
    for file in sorted(folder.glob(f"*/{STAGE_FILE}")):
        shards = [noted(shard.parent) for shard in file.parent.glob(f"[0-9]*/{SHARD_FILE}")]
        ours = [shard for shard in shards if uid in (None, shard["savepoint"])]
        if ours or uid is None:
            stage = SavedStage.model_validate_json(file.read_text())
            found.append(stage.with_state(united_state(shard.get("state") for shard in ours)))
    return found


def lacks_stages(folder: Path, saved: Sequence[SavedStage]) -> bool:
    """Return whether a savepoint's folder has fewer stages than the savepoint, for all we see.

    Copies that were fetched into it don't say what their stage is, and those of former releases not
    which other stages there are.
    """
    uid, expected = uid_of(folder), {stage.name for stage in saved}
    for file in folder.glob(f"*/[0-9]*/{SHARD_FILE}"):
        expected.add(file.parents[1].name)
        shard = noted(file.parent)
        if uid in (None, shard["savepoint"]):
            expected.update(shard.get("stages", ()))
    return not saved or not all((folder / name / STAGE_FILE).exists() for name in expected)


def uid_of(folder: Path) -> str | None:
    """Return whose copies count in a folder; None: all that are there."""
    file = folder / names.SAVEPOINT_FILE
    return str(json.loads(file.read_text())["uid"]) if file.exists() else None


def known_uid(folder: Path) -> str | None:
    """Return the same for those who have another place to look; None also if it can't be read."""
    with suppress(ValueError, KeyError, TypeError):
        return uid_of(folder)
    return None


def is_saved(target: Path, uid: str) -> bool:
    """Return whether a shard was saved already for this very savepoint."""
    return (target / SHARD_FILE).exists() and bool(noted(target)["savepoint"] == uid)


def noted(target: Path) -> dict[str, Any]:
    """Return what is noted of the copy of a shard."""
    return dict(json.loads((target / SHARD_FILE).read_text()))
