"""Imports of a driver are connected while plans are compiled in other threads."""

from streamgraft_common.resources import MatchedImport
from streamgraft_pe_runtime.driver import Driver


def wanting(filter: str) -> list[MatchedImport]:
    """Return an import that wants some rows."""
    return [MatchedImport(operator="clicks", filter=filter, topics=[])]


def test_filters_are_exchanged_as_a_whole() -> None:
    """Who reads them meanwhile finds one filter or the other, and never none."""
    driver = Driver.__new__(Driver)  # without a JVM
    driver._filters = {}
    assert driver.connect(wanting("n > 1"))
    seen = driver._filters
    assert not driver.connect(wanting("n > 1"))
    assert driver.connect(wanting("n > 2"))
    assert (seen, driver._filters) == ({"clicks": "n > 1"}, {"clicks": "n > 2"})
