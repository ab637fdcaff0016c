"""Ends of transactions have offsets, too: who has read all records has no lag because of them."""

import asyncio
import json
import re
import time

import pytest
from confluent_kafka import Producer
from tests.pe_runtime.conftest import KEYS, SHARDS, Output, Stage

pytestmark = pytest.mark.integration

SECONDS = 120
COMMITTED = 3


def write(stage: Stage) -> None:
    """Write transactions, the last of which is aborted: partitions end with its marker."""
    servers = stage.cluster.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "transactional.id": stage.input})
    producer.init_transactions(SECONDS)
    for number in range(COMMITTED + 1):
        producer.begin_transaction()
        for key in range(KEYS):
            value = json.dumps({"key": f"k{key}", "n": number})
            producer.produce(stage.input, value, f"k{key}", partition=key % SHARDS)
        if number < COMMITTED:
            producer.commit_transaction(SECONDS)
    assert producer.flush(SECONDS) == 0
    producer.abort_transaction(SECONDS)


@pytest.mark.parametrize("stage", ["plain", "real time"], indirect=True)
async def test_a_stage_that_is_caught_up_has_no_lag(stage: Stage, output: Output) -> None:
    pe = await stage.start(0, [0, 1])
    await pe.running(0, 1)
    await asyncio.to_thread(write, stage)
    output.until(lambda values: sum(map(len, values.values())) >= COMMITTED * KEYS, SECONDS)
    pattern = re.compile(r'streamgraft_pe_lag_records\{partition="\d",topic="[^"]+"\} (\S+)')
    deadline = time.monotonic() + SECONDS
    while (lags := pattern.findall((await pe.get("/metrics"))[1])) != ["0.0"] * SHARDS:
        assert time.monotonic() < deadline, lags
        await asyncio.sleep(0.2)
    assert output.values == {f"k{key}": list(range(COMMITTED)) for key in range(KEYS)}
