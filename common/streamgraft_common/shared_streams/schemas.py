"""Whether what an export has is what an import reads."""

import json
from collections.abc import Mapping
from typing import Any

_WIDER = {
    "byte": {"short", "integer", "long", "float", "double"},
    "short": {"integer", "long", "float", "double"},
    "integer": {"long", "double"},
    "float": {"double"},
}


def misfit(wanted: Mapping[str, Any], exported: Mapping[str, Any]) -> str:
    """Return why an import can't read an export; '' if it can.

    Both are Spark's JSON form of a StructType. Each column of the import must be one of the export,
    of the same type or a narrower number; what the export has besides is left out.
    """
    there = {field["name"]: field["type"] for field in exported["fields"]}
    for field in wanted["fields"]:
        name = field["name"]
        if name not in there:
            return f"it has no column {name} (it has {', '.join(there)})"
        if not _fits(field["type"], there[name]):
            return f"its column {name} is {_text(there[name])}, not {_text(field['type'])}"
    return ""


def _fits(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, str) or isinstance(found, str):
        return bool(wanted == found or (isinstance(found, str) and wanted in _WIDER.get(found, ())))
    if wanted["type"] != found["type"]:
        return False
    if wanted["type"] == "struct":
        return not misfit(wanted, found)
    inner = ("elementType",) if wanted["type"] == "array" else ("keyType", "valueType")
    return all(_fits(wanted[name], found[name]) for name in inner)


def _text(spark_type: Any) -> str:
    return spark_type if isinstance(spark_type, str) else json.dumps(spark_type)
