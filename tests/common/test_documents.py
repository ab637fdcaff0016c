"""JSON of the API server, which takes objects that are deeper than Python reads."""

import json

from hypothesis import given
from hypothesis import strategies as st

from streamgraft_common.kube.documents import DEEPEST, _cut, loads

LEAVES = st.none() | st.booleans() | st.integers() | st.text()
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner)
)


@given(DOCUMENTS)
def test_what_is_not_deep_stays(document: object) -> None:
    """Brackets and quotes within texts are none."""
    text = json.dumps(document)
    assert json.loads(_cut(text)) == document


def test_what_is_deep_is_read_without_its_depths() -> None:
    """Its neighbours are whole: who may write one object must not hide others."""
    for opened, closed in (("[", "]"), ('{"a]\\"[":', "}")):
        deep = opened * 5000 + "1" + closed * 5000
        text = '{"items": [{"name": "before"}, ' + deep + ', {"name": "behind"}]}'
        for form in (text, text.encode()):
            before, cut, behind = loads(form)["items"]
            assert (before["name"], behind["name"]) == ("before", "behind")
            levels = 2
            while cut is not None:
                (cut,) = cut.values() if isinstance(cut, dict) else cut
                levels += 1
            assert levels == DEEPEST
