"""Names are deterministic and cannot collide."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from streamgraft_common import names

JOB_NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
IDS = st.integers(min_value=0, max_value=99)


@given(JOB_NAMES, IDS, IDS, JOB_NAMES, IDS, IDS)
def test_pod_names_tell_pods_apart(
    job: str, pe: int, launch: int, other: str, other_pe: int, other_launch: int
) -> None:
    """Two pods have one name only if they are the same launch of the same PE of the same job."""
    first, second = (job, pe, launch), (other, other_pe, other_launch)
    assert (names.pod_name(*first) == names.pod_name(*second)) == (first == second)


@given(JOB_NAMES, IDS, JOB_NAMES)
def test_config_maps_of_jobs_and_pes_never_meet(job: str, pe: int, other: str) -> None:
    """A job's own ConfigMaps end in a word, a PE's in a number."""
    pe_map = names.pe_name(job, pe)
    assert pe_map not in (names.job_config_map(other), names.bundle_config_map(other))


def test_names_fit_dns_labels() -> None:
    """The longest names stay within 63 characters."""
    job, region = "j" * names.MAX_JOB_NAME, "r" * names.MAX_PART_NAME
    for name in (names.pod_name(job, 99999, 9999), names.region_name(job, region)):
        assert len(name) <= 63


def test_topics_of_streams_and_regions_differ() -> None:
    """A region's input is a topic of its own below the job's prefix."""
    topics = [names.topic("n", "j", "s"), names.topic("n", "j", "s", "r")]
    assert topics == ["n.j.s", "n.j.s.r"]
    assert all(topic.startswith(names.topic_prefix("n", "j")) for topic in topics)
    assert not any(a == b for a, b in itertools.combinations(topics, 2))


def test_control_ports_follow_port_ids() -> None:
    """The control port of PE port n is 10000 + n (processing element design)."""
    assert [names.control_port(), names.control_port(1)] == [10000, 10001]
