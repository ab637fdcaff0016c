"""What roles can't say: admission policies that bind a right to who uses it, and on what.

They are ValidatingAdmissionPolicies (Kubernetes 1.30); the API server evaluates them itself.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from streamgraft_common import names

_API = "admissionregistration.k8s.io/v1"
_POD_NAME = "authentication.kubernetes.io/pod-name"
"""Set by the API server for a token that is bound to a pod, as all that kubelets hand out."""
_IS_OPERATOR = (
    "request.userInfo.username == 'streamgraft-operator' || request.userInfo.username"
    ".matches('^system:serviceaccount:[^:]+:streamgraft-operator$')"
)
_HAS_ITS_RIGHTS = (
    f"authorizer.group('{names.GROUP}').resource('savepoints').subresource('status')"
    ".namespace(request.namespace).check('patch').allowed()"
)
"""Who may create accounts may call one so. But nobody gives a right that he lacks, and this one is
of no role for people."""


def policies() -> list[dict[str, Any]]:
    """Return the policies and their bindings, which hold in all namespaces."""
    return [*_pes(), *_operator_secrets(), *_savepoints()]


def _pes() -> list[dict[str, Any]]:
    """A PE writes what it says of itself, in the PE that names its pod, and nothing else.

    The operator decides by that who holds a shard: who could write it for others could have two
    pods run one.
    """
    return _policy(
        "streamgraft-pe-status",
        resources=(names.GROUP, "processingelements/status"),
        condition="request.userInfo.username == 'system:serviceaccount:' + request.namespace"
        f" + ':{names.SERVICE_ACCOUNT_PE}'",
        variables={
            "pod": f"has(request.userInfo.extra) && '{_POD_NAME}' in request.userInfo.extra"
            f" ? request.userInfo.extra['{_POD_NAME}'][0] : ''",
        },
        validations={
            "variables.pod != ''": (
                "the account of processing elements writes with tokens that are bound to a pod"
            ),
            "has(oldObject.status) && has(oldObject.status.pod)"
            " && oldObject.status.pod == variables.pod": (
                "a pod writes only the status of the ProcessingElement that names it"
            ),
            "has(object.status) && has(oldObject.status)"
            " && object.status.all(k, k == 'runtime'"
            " || (k in oldObject.status && object.status[k] == oldObject.status[k]))"
            " && oldObject.status.all(k, k == 'runtime' || k in object.status)": (
                "a processing element writes status.runtime; all else is the operator's"
            ),
        },
    )


def _operator_secrets() -> list[dict[str, Any]]:
    """The operator changes no Secret but those with the certificates of control ports."""
    owned = "o, o.kind == 'Job' && o.apiVersion.startsWith('" + names.GROUP + "/')"
    return _policy(
        "streamgraft-operator-secrets",
        resources=("", "secrets"),
        condition=_IS_OPERATOR,
        validations={
            "has(oldObject.metadata.ownerReferences)"
            f" && oldObject.metadata.ownerReferences.exists({owned})": (
                f"the operator changes only Secrets that belong to a {names.GROUP} Job"
            ),
        },
    )


def _savepoints() -> list[dict[str, Any]]:
    """Cuts and rollbacks are the operator's, and so are their names.

    Sinks make final what is in a cut, whoever asks for it, and processing elements remove what has
    the name of an earlier one.
    """
    return _policy(
        "streamgraft-savepoints",
        resources=(names.GROUP, "savepoints"),
        operation="CREATE",
        condition=f"!(({_IS_OPERATOR}) && {_HAS_ITS_RIGHTS})",
        validations={
            "!has(object.spec.consistentRegion) && !has(object.spec.rollsBackTo)": (
                "the operator makes the Savepoints of cuts and rollbacks: raise spec.requested or"
                " spec.rollbackRequested of the ConsistentRegion"
            ),
            f"!object.metadata.name.matches('{names.OF_CUTS}')": (
                "names that end in -cut-<number> or -rollback-<number> are for cuts and rollbacks"
                " of consistent regions: choose another one"
            ),
        },
    )


def _policy(
    name: str,
    *,
    resources: tuple[str, str],
    operation: str = "UPDATE",
    condition: str,
    validations: Mapping[str, str],
    variables: Mapping[str, str] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Return a policy for one operation, and its binding.

    `condition`: on which requests; `validations`: what must be true then, and what is said if not;
    `variables`: expressions that these name. All are in CEL.
    """
    group, resource = resources
    rule = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": [operation],
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
            "variables": [
                {"name": variable, "expression": expression}
                for variable, expression in variables.items()
            ],
            "validations": [
                {"expression": expression, "message": message, "reason": "Forbidden"}
                for expression, message in validations.items()
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
