"""More records than brokers take at once: shown with the client's own mock of brokers."""

import pytest

from streamgraft import _records as records

SMALL_QUEUE = {"queue.buffering.max.messages": "10", "log_level": "2"}
ROWS = [{"number": number} for number in range(100)]


def test_more_records_than_the_queue_holds() -> None:
    mock = {"bootstrap.servers": "", "test.mock.num.brokers": "1", **SMALL_QUEUE}
    assert records.write(mock, "t", ROWS) == len(ROWS)


def test_a_queue_that_stays_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_REQUEST_SECONDS", 0.5)
    with pytest.raises(TimeoutError, match="only 0 records were written"):
        records.write({"bootstrap.servers": "127.0.0.1:1", **SMALL_QUEUE}, "t", ROWS)
