"""Orders with what a slow service knows of their customers.

Orders come from the topic `enrichment-orders`. In a parallel region, keyed by customer, each
customer of a batch is asked for once, several at a time, since the service takes its time and a CPU
does nothing meanwhile. What an order costs then goes to the topic `invoices`. More load means more
channels, and more questions at the same time.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.request import urlopen

import pandas as pd
from pyspark.sql import DataFrame

import streamgraft as sg

ORDER = "id bigint, customer bigint, cents bigint"
INVOICE = f"{ORDER}, segment string, discount int, total bigint"
_AT_A_TIME = 8
_TIMEOUT_SECONDS = 30

app = sg.Application("enrichment", trigger_seconds=1.0)
service = app.parameter("service-url", default="http://127.0.0.1:8090")
orders = app.kafka_source("orders", topic="enrichment-orders", schema=ORDER)


def ask(url: str, customer: int) -> dict[str, Any]:
    """Return what the service knows of a customer.

    Raises OSError; the batch is then tried again, so no order is lost or goes without.
    """
    with urlopen(f"{url}/customers/{customer}", timeout=_TIMEOUT_SECONDS) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def invoiced(frames: Iterator[pd.DataFrame], url: str) -> Iterator[pd.DataFrame]:
    """Yield orders with segment, discount and total."""
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        for frame in frames:
            customers = frame["customer"].unique()
            known = dict(zip(customers, pool.map(partial(ask, url), customers), strict=True))
            answers = frame["customer"].map(known)
            discount = answers.map(lambda answer: answer["discount"]).astype("int32")
            yield frame.assign(
                segment=answers.map(lambda answer: answer["segment"]),
                discount=discount,
                total=frame["cents"] * (100 - discount) // 100,
            )


with app.parallel(
    "customers", key="customer", max_width=8, autoscaling=sg.Autoscaling(max_width=8)
):

    @app.operator(inputs=orders)
    def invoices(orders: DataFrame) -> DataFrame:
        """Ask for the customers."""
        return orders.mapInPandas(partial(invoiced, url=service.value), INVOICE)

    app.kafka_sink("written", input=invoices, topic="invoices", key=["customer"])
