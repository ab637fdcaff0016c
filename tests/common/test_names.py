"""Names are deterministic and cannot collide."""

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_common import names

LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
JOB_NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)
CLOSE_JOB_NAMES = st.from_regex(r"[ab](-{1,2}[abr0]){0,3}", fullmatch=True)
"""Few letters and many hyphens, so that two of them often nearly meet."""
JOBS = JOB_NAMES | CLOSE_JOB_NAMES
REGIONS = st.from_regex(r"[a-z]([a-z0-9-]{0,18}[a-z0-9])?", fullmatch=True)
CLOSE_REGIONS = st.from_regex(r"[abr](-{1,2}[abr]){0,2}", fullmatch=True)
IDS = st.integers(min_value=0, max_value=99_999)
LAUNCHES = st.integers(min_value=1, max_value=999_999)

Namer = Callable[..., str]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (names.pe_name, st.tuples(JOBS, st.integers(0, 3) | IDS)),
        (names.pod_name, st.tuples(JOBS, st.integers(0, 3), st.integers(1, 3) | LAUNCHES)),
        (names.region_name, st.tuples(JOBS, REGIONS | CLOSE_REGIONS)),
        (names.job_config_map, st.tuples(JOBS)),
        (names.bundle_config_map, st.tuples(JOBS)),
        (names.fetched_config_map, st.tuples(JOBS)),
        (names.accepted_config_map, st.tuples(JOBS)),
    ],
)
def test_names_fit_dns_labels_and_tell_things_apart(
    name: Namer, arguments: st.SearchStrategy[tuple[Any, ...]]
) -> None:
    """Two things of one kind have one name only if they are the same."""

    @given(arguments, arguments)
    def holds(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
        first, second = name(*one), name(*other)
        assert len(first) <= 63
        assert LABEL.fullmatch(first)
        assert (first == second) == (one == other)

    holds()


@given(JOBS, IDS, JOBS)
def test_config_maps_of_jobs_and_pes_never_meet(job: str, pe: int, other: str) -> None:
    """A job's own ConfigMaps end in a word each, a PE's in a number."""
    maps = (
        names.job_config_map,
        names.bundle_config_map,
        names.fetched_config_map,
        names.accepted_config_map,
    )
    assert names.pe_name(job, pe) not in [name(other) for name in maps]
    for one, two in itertools.permutations(maps, 2):
        assert one(job) != two(other)


def test_short_names_stay_as_they_are() -> None:
    """The hash is only for names that need it."""
    assert names.pod_name("flights", 4, 7) == "flights-4-7"
    assert names.region_name("flights", "enrich") == "flights-enrich"
    assert names.region_name("a", "b-r") != names.region_name("a-b", "r")


def test_long_names_are_shortened_with_a_hash() -> None:
    """They stay readable, and two that begin alike stay different."""
    long = "a-very-long-name-of-a-job-that-nobody-would-type-twice"
    name = names.pe_name(long, 3)
    assert re.fullmatch(r"a-very-long-name-of-a-job-th--[0-9]{10}-3", name)
    assert name != names.pe_name(f"{long}-2", 3)


def test_topics_of_streams_and_regions_differ() -> None:
    """A region's input is a topic of its own below the job's prefix."""
    topics = [names.topic("n", "j", "s"), names.topic("n", "j", "s", "r")]
    assert topics == ["n.j.s", "n.j.s.r"]
    assert all(topic.startswith("n.j.") for topic in topics)
    assert not any(a == b for a, b in itertools.combinations(topics, 2))


def test_pe_has_the_address_of_its_service() -> None:
    """The second level of name resolution is the cluster's DNS."""
    assert names.pe_host("ns", "flights", 4) == "flights-4.ns.svc"


def test_savepoints_of_users_are_no_cuts() -> None:
    region = names.region_name("orders", "whole")
    cut, back = names.cut_savepoint(region, 12), names.rollback_savepoint(region, 3)
    assert names.cut_number(cut, region) == 12
    assert names.rollback_number(back, region) == 3
    assert names.rollback_number(cut, region) is None
    for name in ("mine", "before-2", f"{region}-cut-x", f"{region}-cut-", "other-cut-3", back):
        assert names.cut_number(name, region) is None


@given(JOBS, REGIONS | CLOSE_REGIONS, IDS)
def test_the_region_of_a_cut_is_known_by_its_savepoints_name(
    job: str, region: str, number: int
) -> None:
    """Also where the name of a job or a region ends as that of a cut does."""
    for name in (names.region_name(job, region), names.region_name(f"{job}-cut-7", region)):
        assert names.region_of_cut(names.cut_savepoint(name, number)) == name
        assert re.search(names.OF_CUTS, names.cut_savepoint(name, number))
        assert re.search(names.OF_CUTS, names.rollback_savepoint(name, number))
        assert names.region_of_cut(names.rollback_savepoint(name, number)) is None
    for name in ("cut-1", "-cut-1", "a-cut-", "a-cut-b", "a-cut-1-b"):
        assert names.region_of_cut(name) is None
