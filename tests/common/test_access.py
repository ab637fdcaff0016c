"""The roles are generated."""

from pathlib import Path

import pytest

from streamgraft_common.access import MANIFESTS, OPERATOR, render

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
