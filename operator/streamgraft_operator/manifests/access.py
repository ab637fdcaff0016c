"""What lets PE pods reach the API: a service account and its binding to a cluster role."""

from typing import Any

from streamgraft_common import names


def service_account(namespace: str) -> dict[str, Any]:
    """Return the account that all PE pods of a namespace run under."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": names.SERVICE_ACCOUNT_PE, "namespace": namespace},
    }


def role_binding(namespace: str) -> dict[str, Any]:
    """Return the binding of that account to the cluster role of the same name."""
    name = names.SERVICE_ACCOUNT_PE
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
    }
