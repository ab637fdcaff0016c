"""Loopback addresses of nodes and pods."""

import errno
import itertools
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgraft_common.kube import KubeClient, KubeConfig
from streamgraft_local.node.addresses import CAPACITY, AddressPool, NoFreeAddress, ranges
from streamgraft_local.node.kubelet_api import KubeletApi
from streamgraft_local.node.node import ProcessNode
from streamgraft_local.node.settings import NodeSettings


def test_a_node_always_starts_with_the_same_range() -> None:
    assert next(ranges("node@/home/a")) == next(ranges("node@/home/a"))
    assert next(ranges("node@/home/a")) != next(ranges("node@/home/b"))


def test_ranges_are_all_different_and_leave_the_first_ones_to_people() -> None:
    found = list(ranges("node"))
    assert len(found) == len(set(found)) == (255 - 16) * 256
    assert min(int(prefix.split(".")[1]) for prefix in found) == 16
    assert max(int(prefix.split(".")[1]) for prefix in found) == 254


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 400)), max_size=600))
def test_live_pods_never_share_an_address(steps: list[tuple[bool, int]]) -> None:
    pool, live = AddressPool("127.20.7"), dict[str, str]()
    for start, number in steps:
        uid = f"pod-{number}"
        if not start:
            pool.release(uid)
            live.pop(uid, None)
        elif uid in live:
            assert pool.allocate(uid) == live[uid]
        elif len(live) < CAPACITY:
            live[uid] = pool.allocate(uid)
    assert len(set(live.values())) == len(live)
    assert "127.20.7.1" not in live.values()


def test_a_full_range_says_so_and_a_released_address_is_used_again() -> None:
    pool = AddressPool("127.20.7")
    for number in range(CAPACITY):
        pool.allocate(f"pod-{number}")
    with pytest.raises(NoFreeAddress, match="all 253 addresses"):
        pool.allocate("one more")
    pool.release("pod-17")
    assert pool.allocate("one more").startswith("127.20.7.")


def test_an_adopted_pod_keeps_its_address() -> None:
    wanted = AddressPool("127.20.7").allocate("new")
    pool = AddressPool("127.20.7")
    pool.claim("old", wanted)
    assert pool.allocate("old") == wanted
    assert pool.allocate("new") != wanted


def test_first_candidates_of_many_nodes_differ() -> None:
    firsts = [next(ranges(f"node@/home/{number}")) for number in range(20)]
    assert all(one != other for one, other in itertools.combinations(firsts, 2))


async def test_a_port_that_is_taken_everywhere_is_told_soon(tmp_path: Path) -> None:
    """As by a kubelet that listens on all addresses."""

    class PlayedApi:
        asked = 0

        async def start(self, address: str) -> None:
            self.asked += 1
            raise OSError(errno.EADDRINUSE, address)

    settings = NodeSettings("node", tmp_path, tmp_path / "ca.crt", {}, {})
    node, api = ProcessNode(KubeClient(KubeConfig("http://127.0.0.1:1")), settings), PlayedApi()
    with pytest.raises(OSError, match="port 10250 is taken on 16 loopback addresses: another"):
        await node._take_range(cast(KubeletApi, api))
    assert api.asked == 16
