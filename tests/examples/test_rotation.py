"""Each example has its turn, and none is forgotten."""

from pathlib import Path

from tests.examples.rotation import NAMES, chosen

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_example_has_its_turn() -> None:
    folders = {folder.name for folder in EXAMPLES.iterdir() if any(folder.glob("*.py"))}
    assert {name.partition("/")[0] for name in NAMES} == folders - {"flights"}
    assert {name for day in range(len(NAMES)) for name in chosen("", 738_000 + day)} == set(NAMES)
    assert chosen("all", 1) == NAMES
    assert chosen("sensors", 1) == ("sensors",)
