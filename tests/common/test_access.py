"""The roles are generated."""

from pathlib import Path

import pytest

from streamgraft_common import names
from streamgraft_common.access import MANIFESTS, OPERATOR, TEST, render
from streamgraft_common.resources import KINDS, TEST_SUITE
from streamgraft_common.resources.base import CustomKind

FOLDER = Path(__file__).parents[2] / "deploy"


@pytest.mark.parametrize("file", MANIFESTS)
def test_manifests_are_current(file: str) -> None:
    """They are what the table says; `make generate` writes it."""
    assert (FOLDER / file).read_text() == render(file)


def test_operator_can_neither_read_everything_nor_give_itself_more() -> None:
    """No wildcards; of roles it may only pass on that of the PEs."""
    for rule in OPERATOR:
        assert "*" not in (*rule.resources, *rule.verbs)
        if rule.group == "rbac.authorization.k8s.io":
            assert rule.verbs == ("create",) or rule.only


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != TEST_SUITE], ids=str)
def test_steps_of_suites_may_wait_for_all_of_our_kinds_and_patch_them(kind: CustomKind) -> None:
    """Steps name the kind; nothing else is ours that a scenario could not ask for."""
    (rule,) = (rule for rule in TEST if rule.group == names.GROUP and kind.plural in rule.resources)
    assert {"get", "list", "watch", "patch"} <= {*rule.verbs}
