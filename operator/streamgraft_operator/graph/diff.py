"""The diff of a new topology against the PEs that exist (section 6.3, step 3): what each change of
a PE takes.

PEs are compared by their `Content`, which is short enough to be kept in an annotation: so the
decision needs nothing but the resources, at any time. The graft and the re-indexing that follow in
the paper need no code here: a PE id never depends on a width, so the new topology already has every
untouched PE under its old id.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from streamgraft_common.content import Change, Content, classify
from streamgraft_common.own_conf import OWN_PREFIX
from streamgraft_common.pe_metadata import PeMetadata

_LENGTH = 16
"""Hexadecimal digits of a hash: enough to tell the few versions of one PE apart."""

_PLACE = {
    "namespace",
    "job",
    "pe_id",
    "stage_name",
    "region",
    "channel",
    "shard_count",
    "checkpoint_path",
}
_UNNOTICED = {"savepoint", "bundle_digest", "bundle"}
"""A savepoint matters to shards that have no checkpoint yet: a PE that runs has nothing to do if it
goes. Of a bundle the code matters, wherever it is; pods get another ConfigMap by their settings."""
_REHEARSAL = frozenset({"rehearsal"})
"""Matters to drivers that wait in a pool."""
_CODE = frozenset({"code"})
_DRIVER = frozenset({"slots", "code_in_place"})


def content_of(metadata: PeMetadata, settings_id: str) -> Content:
    """Return the content of a PE; `settings_id` stands for what job and operator put into pods."""
    return with_settings(graph_content(metadata), settings_id)


def graph_content(metadata: PeMetadata) -> Content:
    """Return the content of a PE, as far as the graph decides it."""
    parts = _parts(metadata)
    return Content(
        driver=_hash(parts[_Part.DRIVER]),
        place=_hash(parts[_Part.PLACE]),
        code=_hash(parts[_Part.CODE]),
        plan=_hash(parts[_Part.PLAN]),
        notes=_hash(parts[_Part.NOTES]),
    )


def in_place(content: Content, metadata: PeMetadata) -> Content:
    """Return the content of a PE of another channel, which differs in its place only."""
    place = metadata.model_dump(mode="json", include=_PLACE, exclude_defaults=True)
    return replace(content, place=_hash(place))


def with_settings(content: Content, settings_id: str) -> Content:
    """Return the whole content, from that of the graph."""
    return replace(content, driver=_hash([settings_id, content.driver]))


def diff(old: Mapping[int, Content], new: Mapping[int, Content]) -> dict[int, Change]:
    """Return what happens to every PE (by id, ascending) of either graph."""
    result = {}
    for pe_id in sorted(old.keys() | new.keys()):
        if pe_id not in old:
            result[pe_id] = Change.ADDED
        elif pe_id not in new:
            result[pe_id] = Change.REMOVED
        else:
            result[pe_id] = classify(old[pe_id], new[pe_id])
    return result


def changed_fields(old: PeMetadata, new: PeMetadata) -> dict[str, Change]:
    """Return which fields of a PE's graph metadata differ, and what each alone would take."""
    before, after = _parts(old), _parts(new)
    classes = (
        (_Part.NOTES, Change.METADATA_ONLY),
        (_Part.CODE, Change.IN_PLACE),
        (_Part.PLAN, Change.IN_PLACE),
        (_Part.DRIVER, Change.RESTART),
        (_Part.PLACE, Change.RESTART),
    )
    return {
        field: change
        for part, change in classes
        for field in sorted(before[part].keys() | after[part].keys())
        if before[part].get(field) != after[part].get(field)
    }


class _Part(StrEnum):
    DRIVER = "driver"
    PLACE = "place"
    CODE = "code"
    PLAN = "plan"
    NOTES = "notes"


def _parts(metadata: PeMetadata) -> dict[_Part, dict[str, Any]]:
    """Return the metadata, dealt out, without what is at its default. What is not named here is the
    queries'."""
    document = metadata.model_dump(mode="json", exclude=_UNNOTICED, exclude_defaults=True)
    conf = document.pop("spark_conf", {})
    live = {name: conf[name] for name in conf if name.startswith(OWN_PREFIX)}
    ports = {side: document.pop(side) for side in ("inputs", "outputs")}
    numbers = {side: [_note(port) for port in ports[side]] for side in ports}
    driver, code, place, rehearsal = (
        {name: document.pop(name) for name in names if name in document}
        for names in (_DRIVER, _CODE, _PLACE, _REHEARSAL)
    )
    if not metadata.code_in_place:
        driver |= code
    return {
        _Part.DRIVER: {**driver, "spark_conf": {n: conf[n] for n in conf if n not in live}},
        _Part.PLACE: place,
        _Part.CODE: code,
        _Part.PLAN: {**document, **ports, "spark_conf": live},
        _Part.NOTES: {**numbers, **rehearsal},
    }


def _note(port: dict[str, Any]) -> dict[str, Any]:
    """Take out of a port what the driver makes no use of: its number, and who reads it first."""
    names = ("port",) if port.get("external") else ("port", "operator")
    return {name: port.pop(name) for name in names}


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]
