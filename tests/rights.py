"""Which rights requests take, and rules give."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from streamgraft_common.access import Rule

Use = tuple[str, str, str]
"""API group, resource with subresource, verb."""


def use_of(method: str, path: str, query: Mapping[str, str]) -> Use:
    """Return what the API server authorizes for a request in a namespace."""
    parts = urlsplit(path).path.strip("/").split("/")
    group = parts[1] if parts[0] == "apis" else ""
    rest = parts[3 if parts[0] == "apis" else 2 :]
    resource, *name = rest[2:] if rest[0] == "namespaces" else rest
    if len(name) == 2:
        resource = f"{resource}/{name[1]}"
    verbs = {
        "GET": "get" if name else "watch" if "watch" in query else "list",
        "POST": "create",
        "PUT": "update",
        "PATCH": "patch",
        "DELETE": "delete" if name else "deletecollection",
    }
    return group, resource, verbs[method]


def allows(rules: tuple[Rule, ...], use: Use, name: str = "") -> bool:
    """Return whether rules allow it, for an object of this name ('': for all of them)."""
    group, resource, verb = use
    return any(
        rule.group == group
        and verb in rule.verbs
        and ("*" in rule.resources or resource in rule.resources)
        and (not rule.only or name in rule.only)
        for rule in rules
    )


def uses_of(rules: tuple[Rule, ...]) -> set[Use]:
    """Return everything that rules allow."""
    return {
        (rule.group, resource, verb)
        for rule in rules
        for resource in rule.resources
        for verb in rule.verbs
    }
