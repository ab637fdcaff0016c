"""What each component, and who uses them, may do in the API: one table, from which all roles are
generated.

`python -m streamgraft_common.access DIR` writes them. The integration tests run under these roles,
so a call that is missing here fails there; and tests compare them with what the operator and the
command line call.
Who a component is (an account, or a user with a certificate) is bound elsewhere.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from streamgraft_common import admission, names

SYSTEM_NAMESPACE = "streamgraft-system"
"""Where our own Deployments, accounts and leases are."""

_RBAC = "rbac.authorization.k8s.io"
_READ = ("get", "list", "watch")


@dataclass(frozen=True)
class Rule:
    """Verbs on resources of one API group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    only: tuple[str, ...] = ()
    """Names of the objects that they hold for; empty: all."""

    def to_wire(self) -> dict[str, Any]:
        """Return the rule as a role has it."""
        rule: dict[str, Any] = {
            "apiGroups": [self.group],
            "resources": list(self.resources),
            "verbs": list(self.verbs),
        }
        return rule | ({"resourceNames": list(self.only)} if self.only else {})


OPERATOR = (
    # A warm pod gets the labels of the PE that adopts it.
    Rule("", ("pods",), ("patch",)),
    Rule(names.GROUP, ("testsuites",), _READ),
    # Users create and delete jobs; the operator adds its finalizer.
    Rule(names.GROUP, ("jobs",), (*_READ, "patch")),
    # Of savepoints those of width changes and of cuts are its own.
    Rule(
        names.GROUP,
        ("savepoints", "consistentregions"),
        (*_READ, "create", "patch", "delete"),
    ),
    Rule(
        names.GROUP,
        ("processingelements", "parallelregions", "exports", "imports", "hostpools"),
        (*_READ, "create", "patch", "delete", "deletecollection"),
    ),
    Rule(
        names.GROUP,
        (
            "jobs/status",
            "processingelements/status",
            "parallelregions/status",
            "hostpools/status",
            "savepoints/status",
            "consistentregions/status",
            "exports/status",
            "imports/status",
            "testsuites/status",
        ),
        ("patch",),
    ),
    Rule("", ("configmaps",), (*_READ, "create", "patch", "delete", "deletecollection")),
    Rule("", ("pods", "services"), (*_READ, "create", "delete", "deletecollection")),
    # Those of regions with an `autoscaling` are its own; others it only reads.
    Rule("autoscaling", ("horizontalpodautoscalers",), (*_READ, "create", "patch", "delete")),
    # By what it sizes warm pools.
    Rule("custom.metrics.k8s.io", (f"parallelregions.{names.GROUP}/expected_demand",), ("get",)),
    # Credentials for bundles and brokers, certificates of control ports, and whether what a job
    # names exists; none is listed.
    Rule("", ("secrets",), ("get", "create", "patch")),
    Rule("", ("persistentvolumeclaims",), ("get",)),
    Rule("", ("events",), ("create", "get", "patch")),
    # It gives the account of a job's pods the role streamgraft-pe, and no other role.
    Rule("", ("serviceaccounts",), ("create",)),
    Rule("", ("serviceaccounts",), ("get",), only=(names.SERVICE_ACCOUNT_PE,)),
    Rule(_RBAC, ("rolebindings",), ("create",)),
    Rule(_RBAC, ("rolebindings",), ("get",), only=(names.SERVICE_ACCOUNT_PE,)),
    Rule(_RBAC, ("clusterroles",), ("bind",), only=(names.SERVICE_ACCOUNT_PE,)),
)

OWN = (
    Rule("coordination.k8s.io", ("leases",), (*_READ, "create", "update")),
    Rule("", ("secrets",), ("get", "create")),
)
"""For the operator in its own namespace: the lease of its replicas, and its authority."""

NODES = (Rule("", ("nodes",), ("list", "watch")),)
"""For the operator, to find the nodes of host pools; nodes have no namespace."""

PE = (
    # Its own pod: once that is gone, another process may be in its place.
    Rule("", ("pods",), ("list", "watch")),
    Rule(names.GROUP, ("processingelements",), ("list", "watch")),
    Rule(names.GROUP, ("processingelements/status",), ("patch",)),
    # Its graph metadata.
    Rule("", ("configmaps",), ("get",)),
)

TEST = (
    # What the steps of a scenario do. Who runs test suites in a namespace binds it there.
    Rule(
        names.GROUP,
        ("jobs", "savepoints", "hostpools", "imports", "exports"),
        (*_READ, "create", "patch", "delete"),
    ),
    Rule(
        names.GROUP,
        (
            "parallelregions",
            "parallelregions/scale",
            "processingelements",
            "consistentregions",
        ),
        (*_READ, "patch", "delete"),
    ),
    Rule("", ("configmaps",), (*_READ, "create", "patch", "delete")),
    Rule("", ("pods",), (*_READ, "delete")),
)

METRICS_ADAPTER = (
    # It answers label selectors from memory. Whoever configures metrics of other kinds of objects
    # gives it list and watch of them.
    Rule(
        names.GROUP,
        ("jobs", "processingelements", "parallelregions"),
        ("list", "watch"),
    ),
    Rule("", ("pods",), ("list", "watch")),
)

PROMETHEUS = (Rule("", ("pods",), ("list", "watch")),)
METRICS_READER = (
    Rule("custom.metrics.k8s.io", ("*",), ("get", "list")),
    Rule("external.metrics.k8s.io", ("*",), ("get", "list")),
)

DISCOVERY = (
    Rule(
        "apiregistration.k8s.io",
        ("apiservices",),
        ("get",),
        only=tuple(
            f"{version}.{group}.metrics.k8s.io"
            for group in ("custom", "external")
            for version in ("v1beta1", "v1beta2")
        ),
    ),
)
"""For everybody whom the API server knows: where the metrics adapter is, who signs its certificate,
and whether it serves. They have no namespace, so that no RoleBinding could give it."""

CONSOLE = (
    Rule("", ("services",), ("get",), only=(names.ADAPTER,)),
    Rule("", ("pods",), ("get", "list")),
    # By SPDY a port is forwarded with the one, by WebSockets with the other.
    Rule("", ("pods/portforward",), ("create", "get")),
)
"""To forward a port to the metrics adapter in its namespace, as `kubectl port-forward` asks for it.
No role can say which pods or ports: it leads to all of the namespace."""

VIEW = (
    Rule(
        names.GROUP,
        (
            "jobs",
            "processingelements",
            "parallelregions",
            "savepoints",
            "consistentregions",
            "exports",
            "imports",
            "hostpools",
            "testsuites",
        ),
        _READ,
    ),
    Rule(names.GROUP, ("parallelregions/scale",), ("get",)),
    *METRICS_READER,
    # Kubernetes' own role for readers has these, too; so this one is enough by itself.
    Rule("", ("configmaps", "pods"), _READ),
    Rule("", ("pods/log",), ("get",)),
    Rule("autoscaling", ("horizontalpodautoscalers",), _READ),
)
"""For people who look at jobs."""

EDIT = (
    *VIEW,
    Rule(
        names.GROUP,
        ("jobs", "savepoints", "exports", "imports", "hostpools", "testsuites"),
        ("create", "update", "patch", "delete", "deletecollection"),
    ),
    # The operator makes these, and makes them again.
    Rule(
        names.GROUP,
        ("processingelements", "parallelregions", "consistentregions"),
        ("update", "patch", "delete"),
    ),
    Rule(names.GROUP, ("parallelregions/scale",), ("update", "patch")),
    # Bundles.
    Rule("", ("configmaps",), ("create", "update", "patch", "delete")),
)
"""For people who run jobs: all that the command line does in a namespace."""

_PEOPLE = {
    "streamgraft-view": (VIEW, ("view",)),
    "streamgraft-edit": (EDIT, ("edit", "admin")),
}
"""Rules by role, and to which roles of Kubernetes they are added."""


def role(kind: str, name: str, rules: tuple[Rule, ...], namespace: str = "") -> dict[str, Any]:
    """Return a Role or ClusterRole."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "rules": [rule.to_wire() for rule in rules],
    }


def _aggregated(name: str) -> dict[str, Any]:
    """Return a role for people, whose rules `view`, `edit` or `admin` of Kubernetes take in."""
    rules, into = _PEOPLE[name]
    found = role("ClusterRole", name, rules)
    found["metadata"]["labels"] = {f"{_RBAC}/aggregate-to-{own}": "true" for own in into}
    return found


def cluster_roles() -> list[dict[str, Any]]:
    """Return the roles of an operator for all namespaces, and those that every cluster needs."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}},
        role("ClusterRole", "streamgraft-operator", OPERATOR),
        role("ClusterRole", "streamgraft-operator-nodes", NODES),
        role("Role", "streamgraft-operator-own", OWN, SYSTEM_NAMESPACE),
        role("ClusterRole", names.SERVICE_ACCOUNT_PE, PE),
        role("ClusterRole", names.SERVICE_ACCOUNT_TEST, TEST),
        role("ClusterRole", "streamgraft-metrics-adapter", METRICS_ADAPTER),
        _prometheus(),
        role("ClusterRole", "streamgraft-metrics-reader", METRICS_READER),
        role("ClusterRole", "streamgraft-discovery", DISCOVERY),
        role("Role", "streamgraft-console", CONSOLE, SYSTEM_NAMESPACE),
        *map(_aggregated, _PEOPLE),
        *admission.policies(),
        _bound(
            "streamgraft-metrics-reader",
            {
                "kind": "ServiceAccount",
                "name": "horizontal-pod-autoscaler",
                "namespace": "kube-system",
            },
        ),
        _bound(
            "streamgraft-discovery",
            {"kind": "Group", "apiGroup": _RBAC, "name": "system:authenticated"},
        ),
    ]


def _bound(name: str, subject: dict[str, str]) -> dict[str, Any]:
    """Return the binding of a ClusterRole, which has its name."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [subject],
    }


def _prometheus() -> dict[str, Any]:
    found = role("ClusterRole", "streamgraft-prometheus", PROMETHEUS)
    # The adapter's own metrics.
    found["rules"].append({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})
    return found


def namespaced_roles() -> list[dict[str, Any]]:
    """Return the role of an operator for one namespace, in which it also runs."""
    return [role("Role", "streamgraft-operator", (*OPERATOR, *OWN))]


def rules_of_chart() -> dict[str, Any]:
    """Return the rules of all roles, by the names under which the Helm chart looks for them."""
    wire = {
        "operator": OPERATOR,
        "operatorNodes": NODES,
        "operatorOwn": OWN,
        "pe": PE,
        "test": TEST,
        "metricsAdapter": METRICS_ADAPTER,
        "metricsReader": METRICS_READER,
        "discovery": DISCOVERY,
        "console": CONSOLE,
        "view": VIEW,
        "edit": EDIT,
    }
    rules = {name: [rule.to_wire() for rule in table] for name, table in wire.items()}
    return rules | {"prometheus": _prometheus()["rules"]}


MANIFESTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "manifests/roles.yaml": cluster_roles,
    "manifests/namespaced-role.yaml": namespaced_roles,
    "chart/files/rules.yaml": lambda: [rules_of_chart()],
    "chart/files/policies.yaml": lambda: [{"policies": admission.policies()}],
}
"""What is generated, by path below `deploy/`."""


def render(file: str) -> str:
    """Return the YAML of a manifest."""
    header = "# Generated from streamgraft_common.access by `make generate`; do not edit.\n"
    documents = MANIFESTS[file]()
    return header + yaml.safe_dump_all(documents, sort_keys=False, width=100)


def main() -> None:
    """Write the manifests into the folder named on the command line (`deploy`)."""
    for file in MANIFESTS:
        (Path(sys.argv[1]) / file).write_text(render(file))


if __name__ == "__main__":
    main()
