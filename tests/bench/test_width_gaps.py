"""What the benchmark of width changes makes of its measurements."""

from bench.width_gaps import Change, Result, table

WIDER = Change(
    from_width=1,
    to_width=2,
    serving=2.5,
    steady={0: 1.0, 1: 1.1},
    gaps={0: 1.2, 1: 1.5},
    affected=frozenset({1}),
    latency=1.7,
    restarted=0,
    state_bytes=3_000_000,
)


def test_a_gap_is_compared_with_that_of_its_group_before() -> None:
    assert [round(gap, 3) for gap in WIDER.added_gaps] == [0.4]
    assert [round(ratio, 3) for ratio in WIDER.other_gap_ratios] == [1.2]
    assert (WIDER.moved_gaps, WIDER.other_gaps) == ([1.5], [1.2])


def test_figures() -> None:
    figures = Result([WIDER], lost=1, duplicated=2, out_of_order=3, neighbour_restarts=0).figures()
    assert figures["added_gap_ms_p95"] == 400.0
    assert figures["moved_gap_ms_p95"] == figures["gap_ms_p95"] == 1500.0
    assert figures["other_gap_ms_p95"] == 1200.0
    assert figures["other_gap_ratio_p50"] == 1.2
    assert figures["steady_gap_ms_p95"] == 1100.0
    assert figures["serving_s_p50"] == figures["serving_s_max"] == 2.5
    assert (figures["lost"], figures["duplicated"], figures["out_of_order"]) == (1, 2, 3)


def test_a_line_for_each_change() -> None:
    result = Result([WIDER, WIDER], lost=0, duplicated=0, out_of_order=0, neighbour_restarts=0)
    assert table({"stateless": result}).row_count == 2
