"""What regions of one job mean for each other."""

import pytest

from streamgraft_autoscaler.propagation import ALONE, RegionFlow, neighbourhoods


def test_a_region_without_neighbours_is_alone() -> None:
    assert neighbourhoods({"a": RegionFlow(100.0, 50.0, 1e9)}) == {"a": ALONE}


def test_growth_above_is_followed_through_the_graph() -> None:
    """The first region catches up at twice its present rate: the others will get twice as much."""
    found = neighbourhoods(
        {
            "c": RegionFlow(10.0, 10.0, 1e9, ("b",)),
            "b": RegionFlow(50.0, 50.0, 1e9, ("a",)),
            "a": RegionFlow(200.0, 100.0, 1e9),
        }
    )
    assert {name: around.growth for name, around in found.items()} == {"a": 1, "b": 2, "c": 2}


def test_what_comes_from_elsewhere_does_not_grow() -> None:
    """Of 1,000 a tenth comes from above, where twice as much is due: a tenth more in all."""
    above = RegionFlow(work=200.0, processing_rate=100.0, limit=1e9)
    mixed = RegionFlow(1000.0, 1000.0, 1e9, ("a",), mixed_rate=1000.0)
    assert neighbourhoods({"a": above, "b": mixed})["b"].growth == pytest.approx(1.1)


def test_growth_ends_at_what_the_region_above_can_do() -> None:
    above = RegionFlow(work=400.0, processing_rate=100.0, limit=150.0)
    assert neighbourhoods({"a": above, "b": RegionFlow(1.0, 1.0, 1e9, ("a",))})["b"].growth == 1.5


def test_an_idle_region_above_shrinks_nothing_below() -> None:
    above = RegionFlow(work=10.0, processing_rate=100.0, limit=1e9)
    assert neighbourhoods({"a": above, "b": RegionFlow(1.0, 1.0, 1e9, ("a",))})["b"].growth == 1


def test_a_region_at_its_largest_width_caps_all_above_it() -> None:
    found = neighbourhoods(
        {
            "a": RegionFlow(100.0, 100.0, 1e9),
            "b": RegionFlow(100.0, 100.0, 1e9, ("a",)),
            "c": RegionFlow(100.0, 100.0, 40.0, ("b",)),
        }
    )
    assert found["c"] == ALONE
    for name in ("a", "b"):
        assert found[name].usable == pytest.approx(0.4)
        assert found[name].bottleneck == "c"


def test_a_backlog_above_a_bottleneck_asks_for_nothing_more() -> None:
    """Whatever waits there: 50 a second go through, and a channel does 100."""
    for waiting in (0.0, 100.0, 500.0, 5000.0):
        above = RegionFlow(work=250.0 + waiting, processing_rate=100.0, limit=400.0)
        below = RegionFlow(100.0, 50.0, 50.0, ("a",))
        found = neighbourhoods({"a": above, "b": below})["a"]
        assert found.bottleneck == "b"
        assert found.usable * above.work == pytest.approx(50.0)


def test_a_loop_ends() -> None:
    flows = {"a": RegionFlow(2.0, 1.0, 9.0, ("b",)), "b": RegionFlow(2.0, 1.0, 9.0, ("a",))}
    assert set(neighbourhoods(flows)) == {"a", "b"}
