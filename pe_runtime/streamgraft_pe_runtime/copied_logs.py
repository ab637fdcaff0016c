"""Entries of a copy's logs, changed where it becomes the checkpoint of another job or is gone back
to. Pure."""

import json
from collections.abc import Mapping, Sequence

from streamgraft_common.resources import SavedStage

_STATE = "/state/"


def renamed_topics(old: SavedStage, new: SavedStage) -> dict[str, str]:
    """Return the topics of the job's own that a stage read → those that it reads now. Pure.

    The old ones were read to their ends, the new ones are fresh: positions in them begin at 0.
    """
    now = {item.stream: item.topic for item in new.inputs}
    return {item.topic: now[item.stream] for item in old.inputs if not item.external}


def rewritten(lines: Sequence[str], topics: Mapping[str, str]) -> list[str]:
    """Return an entry of an offset log with the positions in some topics set to 0. Pure.

    `topics`: old name → new name. Line 0 is the version, line 1 the batch, then one per source.
    """
    return [*lines[:2], *(rewritten_line(line, topics) for line in lines[2:])]


def placed(line: str, ends: Mapping[str, Sequence[int]]) -> str:
    """Return a line of a log, if it has positions in some topics with these at their ends. Pure."""
    document = _positions(line)
    if not document or not document.keys() & ends.keys():
        return line
    return json.dumps(
        {
            topic: {number: ends[topic][int(number)] for number in found}
            if topic in ends
            else found
            for topic, found in document.items()
        }
    )


def relocated(lines: Sequence[str], checkpoint: str) -> list[str]:
    """Return metadata of a stateful operator with its schema files in another checkpoint. Pure.

    Spark writes down where they are in full (transformWithState), and reads them from there.
    """
    version, text = lines
    document = json.loads(text)
    for store in document["stateStoreInfo"]:
        store["stateSchemaFilePaths"] = [
            f"file:{checkpoint}{_STATE}{path.rpartition(_STATE)[2]}"
            for path in store["stateSchemaFilePaths"]
        ]
    return [version, json.dumps(document)]


def rewritten_line(line: str, topics: Mapping[str, str]) -> str:
    """Return a line of a log with the positions in some topics set to 0; `topics` as above."""
    document = _positions(line)
    if not document or not document.keys() & topics.keys():
        return line
    return json.dumps(
        {topics[topic]: dict.fromkeys(partitions, 0) for topic, partitions in document.items()}
    )


def _positions(line: str) -> dict[str, dict[str, int]] | None:
    try:
        document = json.loads(line)
    except ValueError:  # a source without offsets is a dash
        return None
    return document if isinstance(document, dict) else None
