"""Examples and tutorials can run side by side, in one environment."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOPIC = re.compile(r'\btopic="([^"]+)"')


def topics(*patterns: str) -> set[str]:
    """Return the topics that files name."""
    files = (file for pattern in patterns for file in ROOT.glob(pattern))
    return {topic for file in files for topic in TOPIC.findall(file.read_text())}


def test_no_example_has_a_topic_of_a_tutorial() -> None:
    """Records of another schema would be dead letters."""
    examples = topics("examples/*/*.py")
    pages = topics("docs/tutorials/*.md", "README.md", "sdk/streamgraft/cli/template/*.txt")
    assert {"enrichment-orders", "ledger-payments"} <= examples
    assert {"orders", "payments"} <= pages
    assert examples & pages == set()
