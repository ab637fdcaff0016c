"""Reference pages from the code itself: commands, resources, language, chart, programs."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from prometheus_client import REGISTRY, Metric
from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel

import streamgraft
from streamgraft.cli._app import app
from streamgraft_common.kube import KubeClient, KubeConfig
from streamgraft_common.resources import KINDS
from streamgraft_common.resources.crds import structural
from streamgraft_metrics_adapter import telemetry as _telemetry  # noqa: F401  # fills the registry
from streamgraft_metrics_adapter.settings import parser as adapter_parser
from streamgraft_operator.__main__ import parser as operator_parser
from streamgraft_operator.assembly import collectors_of
from streamgraft_operator.kit import metrics as operator_metrics
from streamgraft_operator.kit.caches import Caches
from streamgraft_pe_runtime.metrics import PeMetrics

ROOT = Path(__file__).parents[1]


def pages() -> dict[str, str]:
    """Return each page's Markdown by its path."""
    return {
        "reference/command-line.md": command_line(),
        "reference/resources.md": resources(),
        "reference/language.md": language(),
        "reference/chart.md": chart(),
        "reference/metrics.md": metrics(),
        "reference/programs.md": programs(),
    }


def command_line() -> str:
    """Return a section for each command, with its arguments and options."""
    lines = ["# Commands", "", "Options before the command hold for all of them."]
    for name, command in _commands("streamgraft", typer.main.get_command(app)):
        lines += ["", f"## {name}", "", _line(command.help), ""]
        rows = [
            (f"`{' '.join([*item.opts, *item.secondary_opts])}`", _line(getattr(item, "help", "")))
            for item in command.params
            if not getattr(item, "hidden", False)
        ]
        lines += _table(("argument or option", "what it does"), rows)
    return "\n".join(lines) + "\n"


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for part, inner in sorted(getattr(command, "commands", {}).items()):
        if not inner.hidden:
            yield from _commands(f"{name} {part}", inner)


def resources() -> str:
    """Return a table of the fields of each kind, as its definition has them."""
    lines = ["# Resources", "", "All kinds are in the group `streamgraft.io`."]
    for kind in KINDS:
        lines += ["", f"## {kind.kind}"]
        for part, model in (("spec", kind.spec), ("status", kind.status)):
            schema = structural(model)
            lines += ["", f"### {kind.kind}.{part}", "", _line(schema.get("description")), ""]
            lines += _table(("field", "type", "meaning"), _fields(schema, part, model))
    return "\n".join(lines) + "\n"


def _fields(
    schema: dict[str, Any], path: str, model: type[BaseModel] | None = None
) -> Iterator[tuple[str, str, str]]:
    for name, field in schema.get("properties", {}).items():
        inner = field.get("items") or field.get("additionalProperties") or {}
        kind = field.get("type", "any")
        if inner:
            kind = f"{'list' if kind == 'array' else 'map'} of {inner.get('type', 'any')}"
        choices = " or ".join(f"`{choice}`" for choice in field.get("enum", []))
        meaning = " ".join(filter(None, (_line(field.get("description")), choices)))
        default = _default(model, name)
        yield f"`{path}.{name}`", kind, meaning + (f" Default: `{default}`." if default else "")
        ending = "[]" if "items" in field else ".*" if "additionalProperties" in field else ""
        yield from _fields(inner or field, f"{path}.{name}{ending}")


def _default(model: type[BaseModel] | None, name: str) -> str:
    """Return the default of a model's own field, if it is a plain value."""
    fields = model.model_fields.values() if model else ()
    default = next((item.default for item in fields if item.alias == name), None)
    return str(default) if isinstance(default, (bool, int, float, str)) else ""


def language() -> str:
    """Return signature and docstring of everything that `import streamgraft` offers."""
    lines = ["# The language", "", "All of this is `import streamgraft as sg`."]
    for name in streamgraft.__all__:
        item = getattr(streamgraft, name)
        lines += ["", f"## {name}", "", *_documented(name, item)]
        if inspect.isclass(item) and not issubclass(item, BaseException):
            for method, function in inspect.getmembers(item, inspect.isfunction):
                if not method.startswith("_") and function.__module__.startswith("streamgraft"):
                    lines += ["", f"### {name}.{method}", "", *_documented(method, function)]
            if issubclass(item, BaseModel):
                rows = [
                    (f"`{field}`", f"`{info.default}`", _line(info.description))
                    for field, info in item.model_fields.items()
                ]
                lines += ["", *_table(("field", "default", "meaning"), rows)]
    return "\n".join(lines) + "\n"


def _documented(name: str, item: Any) -> list[str]:
    text = (inspect.getdoc(item) or "").splitlines()
    if not inspect.isfunction(item):
        return text
    parameters = [
        str(each.replace(annotation=each.empty))
        for each in inspect.signature(item).parameters.values()
        if each.name != "self"
    ]
    return ["```python", f"{name}({', '.join(parameters)})", "```", "", *text]


def chart() -> str:
    """Return the chart's values with their comments."""
    values = (ROOT / "deploy/chart/values.yaml").read_text()
    return f"# Values of the chart\n\n```yaml\n{values.strip()}\n```\n"


def metrics() -> str:
    """Return what each program tells Prometheus about itself and its work."""
    lines = ["# Metrics", "", "Prometheus adds labels of its own, docs/develop/contracts.md."]
    told = {
        "Processing elements": text_string_to_metric_families(PeMetrics(1).exposition().decode()),
        "Operator": [*operator_metrics.REGISTRY.collect(), *_of_objects()],
        "Metrics adapter": [
            family for family in REGISTRY.collect() if family.name.startswith("streamgraft_")
        ],
    }
    for who, families in told.items():
        rows = [(f"`{item.name}`", item.type, _line(item.documentation)) for item in families]
        lines += ["", f"## {who}", "", *_table(("metric", "type", "meaning"), sorted(rows))]
    return "\n".join(lines) + "\n"


def _of_objects() -> Iterator[Metric]:
    """Yield what the operator tells of the objects that it looks after: of none, without values."""
    nowhere = KubeClient(KubeConfig(server="http://127.0.0.1:1"))
    for collector in collectors_of(Caches(nowhere, ())):
        yield from collector.collect()


def programs() -> str:
    """Return the settings of the operator and of the metrics adapter."""
    lines = [
        "# Settings of operator and adapter",
        "",
        "The chart sets them by its values, or to what its pods need.",
    ]
    for title, program in (("Operator", operator_parser()), ("Metrics adapter", adapter_parser())):
        rows = [
            (
                f"`{action.option_strings[-1]}`",
                "required" if action.required else _plain(action.default),
                _line((action.help or "").replace("%(default)s", "the default")),
            )
            for action in program._actions
            if action.dest != "help"
        ]
        lines += ["", f"## {title}", "", *_table(("setting", "default", "meaning"), rows)]
    return "\n".join(lines) + "\n"


def _plain(default: object) -> str:
    return f"`{default}`" if default not in (None, [], False) else ""


def _line(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").strip()


def _table(head: tuple[str, ...], rows: Any) -> list[str]:
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    if not lines:
        return []
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {row} |" for row in lines)]
