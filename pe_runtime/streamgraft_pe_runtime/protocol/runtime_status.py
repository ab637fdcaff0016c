"""The PE's own part of its resource's status, and the patch that brings it there. Pure."""

from collections.abc import Mapping
from typing import Any

from streamgraft_common.resources import RuntimeStatus

_MAPS = ("shards", "releases")


def merge_patch(known: Mapping[str, Any], status: RuntimeStatus) -> dict[str, Any]:
    """Return the JSON merge patch of the status subresource.

    `known`: `status.runtime` as we know it. The patch says everything, so it is right whatever of
    an earlier one arrived; keys that are gone are set to null, as a merge patch needs it.
    """
    wire = status.to_wire()
    for name in _MAPS:
        entries = wire.get(name, {})
        wire[name] = {key: None for key in known.get(name, {}) if key not in entries} | {
            key: _with_nulls(known.get(name, {}).get(key, {}), entry)
            for key, entry in entries.items()
        }
    return {"status": {"runtime": wire}}


def _with_nulls(known: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: None for key in known if key not in entry} | dict(entry)


def applied(known: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return what may be in `status.runtime` after a patch that may not have arrived.

    All keys that either version has: the next patch overwrites or removes each of them.
    """
    runtime: Mapping[str, Any] = patch["status"]["runtime"]
    result = {**known, **runtime}
    for name in _MAPS:
        before, after = known.get(name, {}), runtime.get(name, {})
        result[name] = {
            key: {**before.get(key, {}), **(after.get(key) or {})} for key in {**before, **after}
        }
    return result
