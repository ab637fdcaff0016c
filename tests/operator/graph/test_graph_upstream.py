"""Which regions feed which."""

from typing import Any

from streamgraft_common.adl import Adl
from streamgraft_operator.graph.upstream import Above, above_regions


def adl(*operators: tuple[str, str, str | None]) -> Adl:
    """Return an application of (name, inputs, region); each operator has a stream of its name."""
    parts: list[dict[str, Any]] = [
        {
            "name": name,
            "kind": "function",
            "inputs": inputs.split(),
            "outputs": [name],
            "region": region,
        }
        for name, inputs, region in operators
    ]
    regions = dict.fromkeys(region for _, _, region in operators if region)
    return Adl.model_validate(
        {
            "name": "a",
            "builtBy": "0",
            "module": "m",
            "application": "a",
            "operators": parts,
            "streams": [
                {"name": part["name"], "producer": part["name"], "schema": {}} for part in parts
            ],
            "regions": [{"name": name, "key": ["k"], "maxWidth": 4} for name in regions],
        }
    )


def test_regions_are_found_through_what_is_between() -> None:
    found = above_regions(
        adl(
            ("source", "", None),
            ("a", "source", "first"),
            ("b", "a", "first"),
            ("between", "b", None),
            ("c", "between source", "second"),
            ("d", "c b", "third"),
        )
    )
    assert found == {
        "first": Above((), others=True),
        "second": Above(("first",), others=True),
        "third": Above(("first", "second"), others=False),
    }
