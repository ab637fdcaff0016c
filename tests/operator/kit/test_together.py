"""Writes of one reconcile all end before it does."""

import asyncio

import pytest

from streamgraft_operator.kit.together import together


async def test_all_have_ended_when_the_first_failure_is_raised() -> None:
    ended = asyncio.Event()

    async def fails() -> None:
        raise ValueError("first")

    async def goes_on() -> None:
        await asyncio.sleep(0.01)
        ended.set()

    with pytest.raises(ValueError, match="first"):
        await together([fails(), goes_on()])
    assert ended.is_set()


async def test_no_work_is_no_error() -> None:
    await together([])
