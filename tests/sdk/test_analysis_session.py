"""A process that has a driver keeps it when applications are analyzed."""

import pytest
from pyspark.sql import SparkSession

from streamgraft._analysis_session import analysis_session

pytestmark = pytest.mark.integration


def test_a_driver_that_runs_is_used_and_stays(spark: SparkSession) -> None:
    conf = {"spark.sql.shuffle.partitions": "3", "spark.sql.warehouse.dir": "/nowhere"}
    with analysis_session(conf) as session:
        assert session.conf.get("spark.sql.shuffle.partitions") == "3"
        assert session.range(2).count() == 2
    assert spark.range(3).count() == 3
    assert spark.conf.get("spark.sql.shuffle.partitions") == "1"
