"""Balances of the ledger, and its files: put aside by batch, final with the cut, once."""

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.examples.conftest import Graphs, Records
from tests.examples.rotation import turn

from examples.ledger.app import PAYMENT, app, folder, lines, publish, staged
from examples.ledger.payments import payments
from streamgraft import Batch, Cut


def test_payments_are_the_same_for_a_seed() -> None:
    assert list(payments(50)) == list(payments(50))
    assert any(payment["cents"] == 0 for payment in payments(500))


@turn("ledger")
@pytest.mark.integration
def test_balances_add_up(graph_of: Graphs, records: Records) -> None:
    given = list(payments(500))
    found = graph_of(app).run(payments=records(given, PAYMENT))
    booked = [payment for payment in given if payment["cents"]]
    assert sorted(row["id"] for row in found.rows("booked")) == [it["id"] for it in booked]
    wanted: Counter[str] = Counter()
    for payment in booked:
        wanted[payment["account"]] += payment["cents"]
    assert {row["account"]: row["cents"] for row in found.rows("balances")} == wanted


@turn("ledger")
@pytest.mark.integration
def test_a_batch_that_comes_again_is_there_once_and_later_ones_wait(
    spark: SparkSession, records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "value", str(tmp_path))
    first, second = list(payments(20)), list(payments(30))[20:]
    for number, batch in ((4, first), (4, first), (5, second)):
        lines(records(batch, PAYMENT), Batch(number, writer="w", incarnation="i"))
    assert len(list(staged(Batch(4, writer="w", incarnation="i")).iterdir())) == 2
    cut = Cut(number=1, savepoint="s", writer="w", incarnation="i", shard=0, last_batch=4)
    for _ in range(2):  # a commit may come again, too
        publish(cut)
        (file,) = (tmp_path / "final").iterdir()
        assert [json.loads(line)["id"] for line in file.read_text().splitlines()] == [*range(20)]
