"""Render the custom resource definitions: `python -m streamgraft_common.resources.crds DIR`."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from streamgraft_common import names
from streamgraft_common.kinds import CUSTOM_RESOURCE_DEFINITION
from streamgraft_common.resources import KINDS
from streamgraft_common.resources.base import CustomKind


class StructuralSchema(GenerateJsonSchema):
    """JSON Schema as Kubernetes takes it: no titles, no const, no null type."""

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        """Render `X | None` as X with `nullable`."""
        return {**self.generate_inner(schema["schema"]), "nullable": True}

    def literal_schema(self, schema: Any) -> JsonSchemaValue:
        """Render a Literal as an enum, also with one value."""
        return {"type": "string", "enum": schema["expected"]}

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave titles out."""
        return False


def structural(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of the model with every reference written out."""
    schema = model.model_json_schema(schema_generator=StructuralSchema)
    definitions = schema.pop("$defs", {})

    def expand(node: Any) -> Any:
        if isinstance(node, list):
            return [expand(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            node = {**definitions[node["$ref"].rpartition("/")[2]], **node}
        node = {key: expand(value) for key, value in node.items() if _kept(key, value)}
        if isinstance(text := node.get("description"), str):  # kubectl breaks lines by itself
            node["description"] = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
        for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(value := node.get(bound), (int, float)):
                node |= {limit: value, bound: True}
        return node

    expanded: dict[str, Any] = expand(schema)
    return expanded


def _kept(key: str, value: Any) -> bool:
    if key == "default":  # the model defaults, not the API server: objects stay as users wrote them
        return False
    if key == "additionalProperties" and isinstance(value, bool):  # said by x-kubernetes-preserve-…
        return False
    return key != "$ref" and not (key == "title" and isinstance(value, str)) and value is not False


def selectable(kind: CustomKind) -> dict[str, Any]:
    """Return the part of a version that says what field selectors can name."""
    paths = [{"jsonPath": path} for path in kind.selectable]
    return {"selectableFields": paths} if paths else {}


def crd(kind: CustomKind) -> dict[str, Any]:
    """Return the definition of a namespaced kind.

    Its content id tells `streamgraft doctor` whether an installed one is that of its release.
    """
    spec = _spec(kind)
    content_id = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITION.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITION.kind,
        "metadata": {
            "name": kind.qualified,
            "annotations": {names.ANNOTATION_CONTENT: content_id},
        },
        "spec": spec,
    }


def _spec(kind: CustomKind) -> dict[str, Any]:
    spec = structural(kind.spec)
    if kind.rules:
        spec["x-kubernetes-validations"] = [rule.to_wire() for rule in kind.rules]
    subresources: dict[str, Any] = {"status": {}}
    if kind.scale:
        subresources["scale"] = kind.scale.to_wire()
    schema: dict[str, Any] = {
        "type": "object",
        "required": ["spec"],
        "description": (sys.modules[kind.spec.__module__].__doc__ or "").strip(),
        "properties": {"spec": spec, "status": structural(kind.status)},
    }
    if kind.object_rules:
        schema["x-kubernetes-validations"] = [rule.to_wire() for rule in kind.object_rules]
    return {
        "group": names.GROUP,
        "scope": "Namespaced",
        "names": {
            "kind": kind.kind,
            "plural": kind.plural,
            "singular": kind.kind.lower(),
            "shortNames": list(kind.short_names),
            "categories": list(kind.categories),
        },
        "versions": [
            {
                "name": names.VERSION,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": schema},
                "subresources": subresources,
                "additionalPrinterColumns": [column.to_wire() for column in kind.columns],
                **selectable(kind),
            }
        ],
    }


def render(kind: CustomKind) -> str:
    """Return the YAML of a kind's definition."""
    return "# Generated from the models by `make generate`; do not edit.\n" + yaml.safe_dump(
        crd(kind), sort_keys=False, width=100
    )


def main() -> None:
    """Write one file per kind into the folder named on the command line."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        (folder / f"{kind.plural}.yaml").write_text(render(kind))


if __name__ == "__main__":
    main()
