"""The comparison finds what differs, and nothing else."""

from examples.flights.comparison import Difference, differences, flights_of, result_of


def test_equal_results() -> None:
    """Null and absent are the same: Spark leaves null fields out."""
    assert differences({("EWR", "UA"): {"flights": 1}}, {("EWR", "UA"): {"flights": 1}}) == []
    absent = {("EWR", "UA"): {"flights": 1}}
    assert differences(absent, {("EWR", "UA"): {"flights": 1, "dep_delay_max": None}}) == []


def test_differences_are_found() -> None:
    """Another value, a missing key, and a key too many."""
    streamed = {("EWR", "UA"): {"flights": 2}, ("LGA", "DL"): {"flights": 5}}
    batch = {("EWR", "UA"): {"flights": 1}, ("JFK", "B6"): {"flights": 3}}
    found = differences(streamed, batch)
    assert found == [
        Difference(("EWR", "UA"), "flights", 2, 1),
        Difference(("JFK", "B6"), "flights", None, 3),
        Difference(("LGA", "DL"), "flights", 5, None),
    ]
    assert str(found[0]) == "EWR-UA flights: streamed 2, batch 1"


def test_last_record_of_a_key_counts() -> None:
    """The topic holds every update of a key; the last one is its result."""
    records = [
        {"origin": "EWR", "carrier": "UA", "flights": 1},
        {"origin": "LGA", "carrier": "DL", "flights": 4},
        {"origin": "EWR", "carrier": "UA", "flights": 3},
    ]
    result = result_of(records)
    assert result == {("EWR", "UA"): {"flights": 3}, ("LGA", "DL"): {"flights": 4}}
    assert flights_of(result) == 7
