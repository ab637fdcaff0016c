"""What roles can't say: admission policies that bind a right to who uses it, and on what.

They are ValidatingAdmissionPolicies (Kubernetes 1.30); the API server evaluates them itself.
"""

from typing import Any

from streamgraft_common import names

_API = "admissionregistration.k8s.io/v1"
_POD_NAME = "authentication.kubernetes.io/pod-name"
"""Set by the API server for a token that is bound to a pod, as all that kubelets hand out."""

PES = "streamgraft-pe-status"
SECRETS = "streamgraft-operator-secrets"


def policies() -> list[dict[str, Any]]:
    """Return the policies and their bindings, which hold in all namespaces."""
    return [*_pes(), *_operator_secrets()]


def _pes() -> list[dict[str, Any]]:
    """A PE writes what it says of itself, in the PE that names its pod, and nothing else.

    The operator decides by that who holds a shard: who could write it for others could have two
    pods run one.
    """
    account = f"':{names.SERVICE_ACCOUNT_PE}'"
    pod = f"request.userInfo.extra['{_POD_NAME}'][0]"
    same = "k in {0} && {1}.status[k] == {2}.status[k]"
    forward = same.format("oldObject.status", "object", "oldObject")
    return _policy(
        PES,
        resources=(names.GROUP, "processingelements/status"),
        condition="request.userInfo.username == 'system:serviceaccount:' + request.namespace"
        f" + {account}",
        validations=(
            (
                f"has(request.userInfo.extra) && '{_POD_NAME}' in request.userInfo.extra",
                "the account of processing elements writes with tokens that are bound to a pod",
            ),
            (
                "has(oldObject.status) && has(oldObject.status.pod) && has(request.userInfo.extra)"
                f" && '{_POD_NAME}' in request.userInfo.extra && oldObject.status.pod == {pod}",
                "a pod writes only the status of the ProcessingElement that names it",
            ),
            (
                "has(object.status) && has(oldObject.status)"
                f" && object.status.all(k, k == 'runtime' || ({forward}))"
                " && oldObject.status.all(k, k == 'runtime' || k in object.status)",
                "a processing element writes status.runtime; all else is the operator's",
            ),
        ),
    )


def _operator_secrets() -> list[dict[str, Any]]:
    """The operator changes no Secret but those with the certificates of control ports."""
    user = "request.userInfo.username"
    owned = "o, o.kind == 'Job' && o.apiVersion.startsWith('" + names.GROUP + "/')"
    return _policy(
        SECRETS,
        resources=("", "secrets"),
        condition=f"{user} == 'streamgraft-operator'"
        f" || {user}.matches('^system:serviceaccount:[^:]+:streamgraft-operator$')",
        validations=(
            (
                "has(oldObject.metadata.ownerReferences)"
                f" && oldObject.metadata.ownerReferences.exists({owned})",
                "the operator changes only Secrets that belong to a streamgraft.io Job",
            ),
        ),
    )


def _policy(
    name: str,
    *,
    resources: tuple[str, str],
    condition: str,
    validations: tuple[tuple[str, str], ...],
) -> list[dict[str, Any]]:
    group, resource = resources
    rule = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": [resource],
    }
    policy = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "who", "expression": condition}],
            "validations": [
                {"expression": expression, "message": message, "reason": "Forbidden"}
                for expression, message in validations
            ],
        },
    }
    binding = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return [policy, binding]
