"""From a configuration of prometheus-adapter to ours.

prometheus-adapter finds series and kinds of objects at run time and asks Prometheus once per
object; here a rule names one metric of one kind of object and asks for all objects at once. So one
of its rules becomes one rule of ours per kind of object, and what depends on run time can't be
translated: `Migration.problems` says so, rule by rule.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from pydantic import ValidationError

from streamgraft_metrics_adapter.rules.configuration import MetricRule

Document = Mapping[str, Any]

_KINDS = {
    ("", "namespace"): ("v1", "Namespace", "namespaces"),
    ("", "pod"): ("v1", "Pod", "pods"),
    ("", "service"): ("v1", "Service", "services"),
    ("", "node"): ("v1", "Node", "nodes"),
    ("", "persistentvolumeclaim"): ("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("apps", "deployment"): ("apps/v1", "Deployment", "deployments"),
    ("apps", "statefulset"): ("apps/v1", "StatefulSet", "statefulsets"),
    ("apps", "daemonset"): ("apps/v1", "DaemonSet", "daemonsets"),
    ("apps", "replicaset"): ("apps/v1", "ReplicaSet", "replicasets"),
    ("batch", "job"): ("batch/v1", "Job", "jobs"),
    ("networking.k8s.io", "ingress"): ("networking.k8s.io/v1", "Ingress", "ingresses"),
}
"""(group, singular) → (apiVersion, kind, plural)."""
_CLUSTER_SCOPED = {"Namespace", "Node"}

_SERIES = re.compile(r"\s*([A-Za-z_:][\w:]*)\s*(?:\{(.*)\})?\s*", re.DOTALL)
_NAME_MATCHER = re.compile(r"""\{\s*__name__\s*=~?\s*["']\^?([A-Za-z_:][\w:]*)\$?["']\s*,?(.*)\}""")
_PLACEHOLDER = re.compile(r"<<\s*\.(Series|LabelMatchers|GroupBy)\s*>>")
_BY = re.compile(r"\bby\s*\(([^()]*)\)")
_AGGREGATION = re.compile(r"\s*(sum|avg|min|max|count|stddev|stdvar|group|quantile)\s*\(")
_RANGE = re.compile(r"\[\s*([0-9hms]+)\s*[:\]]")


class Untranslatable(Exception):
    """The message says why, and what to do instead."""


@dataclass
class Migration:
    """What came of it: rules in our file's form, and what has none."""

    metrics: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def migrated(document: Document) -> Migration:
    """Translate a configuration of prometheus-adapter (its file, or the ConfigMap around it)."""
    if document.get("kind") == "ConfigMap":
        document = _inner(document)
    result = Migration()
    for section, translate in (("rules", _object_metrics), ("externalRules", _external_metrics)):
        for index, rule in enumerate(document.get(section) or ()):
            try:
                for metric in translate(rule):
                    MetricRule.model_validate(metric)
                    result.metrics.append(metric)
            except (Untranslatable, ValidationError, re.error) as error:
                result.problems.append(f"{section}[{index}]: {error}")
    if document.get("resourceRules"):
        result.problems.append(
            "resourceRules: metrics.k8s.io (CPU and memory) is not served here: run metrics-server"
        )
    return result


def _inner(config_map: Document) -> Document:
    files = config_map.get("data") or {}
    if len(files) != 1:
        raise ValueError(f"this ConfigMap has {len(files)} files: pass the one that is meant")
    (text,) = files.values()
    document = yaml.safe_load(text)
    if not isinstance(document, dict):
        raise ValueError("the file in this ConfigMap is no configuration of prometheus-adapter")
    return document


def _object_metrics(rule: Document) -> Iterator[dict[str, Any]]:
    series, selector = _series(rule)
    labels = _labels(rule)
    if not labels:
        raise Untranslatable("it names no kinds of objects: add resources.overrides")
    namespace_label = labels.get(("", "namespace"))
    for (group, singular), label in labels.items():
        version, kind, plural = _kind(group, singular)
        namespaced = kind not in _CLUSTER_SCOPED
        if namespaced and namespace_label is None:
            raise Untranslatable(f"no label says in which namespace a {singular} is")
        place = {"namespaceLabel": namespace_label} if namespaced and namespace_label else {}
        by = [*place.values(), label]
        yield {
            "name": _name(rule, series),
            "object": {
                "apiVersion": version,
                "kind": kind,
                "resource": plural,
                "nameLabel": label,
                **place,
            },
            **_query(rule, series, selector, by),
        }


def _external_metrics(rule: Document) -> Iterator[dict[str, Any]]:
    series, selector = _series(rule)
    resources = rule.get("resources") or {}
    namespaced = resources.get("namespaced", True)
    label = _labels(rule).get(("", "namespace"), "namespace") if namespaced else None
    place = {"namespaceLabel": label} if label else {}
    yield {
        "name": _name(rule, series),
        "external": place,
        **_query(rule, series, selector, list(place.values())),
    }


def _series(rule: Document) -> tuple[str, str]:
    """Return the name of the series and the selector that finds them."""
    text = str(rule.get("seriesQuery", ""))
    found = _NAME_MATCHER.fullmatch(text.strip()) or _SERIES.fullmatch(text)
    if not found:
        raise Untranslatable(
            f"which series {text!r} finds is known at run time only: write one rule per metric"
        )
    name, matchers = found[1], (found[2] or "").strip()
    for condition in rule.get("seriesFilters") or ():
        if ("is" in condition and not re.search(condition["is"], name)) or (
            "isNot" in condition and re.search(condition["isNot"], name)
        ):
            raise Untranslatable(f"its own seriesFilters leave nothing of {name}")
    return name, f"{name}{{{matchers}}}" if matchers else name


def _labels(rule: Document) -> dict[tuple[str, str], str]:
    """Return the label of each kind of object that the rule names."""
    resources = rule.get("resources") or {}
    overrides: Mapping[str, Document] = resources.get("overrides") or {}
    if not overrides and resources.get("template"):
        return _templated(str(resources["template"]), str(rule.get("seriesQuery")))
    return {
        (str(entry.get("group", "")), _singular(str(entry["resource"]))): label
        for label, entry in overrides.items()
    }


def _templated(template: str, series_query: str) -> dict[tuple[str, str], str]:
    named: dict[tuple[str, str], str] = {}
    for group, singular in _KINDS:
        label = re.sub(r"<<\s*\.Resource\s*>>", singular, template)
        label = re.sub(r"<<\s*\.Group\s*>>", group, label)
        if re.search(rf"\b{re.escape(label)}\s*!?=", series_query):
            named[group, singular] = label
    if not named:
        raise Untranslatable(
            f"which labels like {template!r} there are is known at run time only: name them in"
            " resources.overrides"
        )
    return named


def _singular(resource: str) -> str:
    plurals = {plural: singular for (_, singular), (_, _, plural) in _KINDS.items()}
    return plurals.get(resource, resource)


def _kind(group: str, singular: str) -> tuple[str, str, str]:
    # Deployments and their like have long left `extensions`.
    known = _KINDS.get((group if group != "extensions" else "apps", singular))
    if known is None:
        name = f"{singular}.{group}" if group else singular
        raise Untranslatable(f"what {name} is is not known here: write its rule (object:) by hand")
    return known


def _name(rule: Document, series: str) -> str:
    naming = rule.get("name") or {}
    pattern = re.compile(str(naming.get("matches") or ".*"))
    wanted = str(naming.get("as") or ("$1" if pattern.groups == 1 else "$0"))
    found = pattern.search(series)
    if not found:
        raise Untranslatable(f"its own name.matches does not match {series}")
    return re.sub(r"\$\{?(\w+)\}?", lambda part: _group(found, part[1]), wanted)


def _group(found: re.Match[str], reference: str) -> str:
    return found[int(reference)] if reference.isdigit() else found[reference]


def _query(rule: Document, series: str, selector: str, by: list[str]) -> dict[str, Any]:
    template = str(rule.get("metricsQuery") or "")
    if not template:
        raise Untranslatable("it has no metricsQuery")
    values = {
        "Series": series,
        "LabelMatchers": ",".join(f'{label}!=""' for label in by),
        "GroupBy": ", ".join(by),
    }
    query = _PLACEHOLDER.sub(lambda part: values[part[1]], template)
    # Where nothing was filled in before a comma.
    query = re.sub(r"([({])\s*,\s*", r"\1", query)
    if "<<" in query:
        left = query[query.index("<<") :].partition(">>")[0]
        raise Untranslatable(f"{left}>> has no counterpart: one query answers for all objects")
    query = _keeping(query, by)
    window = _RANGE.search(query)
    return {
        "series": selector,
        "query": query,
        **({"window": window[1]} if window else {}),
    }


def _keeping(query: str, labels: list[str]) -> str:
    """Return the query with these labels in its aggregations: there one object was asked for, here
    they tell objects apart."""
    grouped = list(_BY.finditer(query))
    if not grouped:
        if labels and _AGGREGATION.match(query) and "without" not in query:
            raise Untranslatable(f"its metricsQuery drops {', '.join(labels)}: add `by (...)`")
        return query

    def added(found: re.Match[str]) -> str:
        there = [label.strip() for label in found[1].split(",") if label.strip()]
        return f"by ({', '.join([*there, *(label for label in labels if label not in there)])})"

    return _BY.sub(added, query)
