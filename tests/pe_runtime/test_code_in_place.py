"""A running driver takes up other code: on real Spark, with real Python workers, under load."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.pe_runtime.conftest import ADL, content

from streamgraft_common.code import code_of_pe

pytestmark = pytest.mark.integration

MODULE = """
from pyspark.sql import functions as F
from streamgraft import Application

import numbers_early

app = Application("numbers")
app.parameter("broken", default="")
app.parameter("least", default="0")


@app.operator(inputs="numbers")
def plain(frame):
    def shifted(n):
        import numbers_late

        return n + numbers_early.SHIFT + numbers_late.SHIFT

    return frame.withColumn("n", F.udf(shifted, "long")("n"))
"""
NAMED = """
from pyspark.sql import functions as F
from streamgraft import Application

app = Application("numbers")
app.parameter("broken", default="")
least = app.parameter("least", default="0")


def raised(n):
    return n + int(least.value)


@app.operator(inputs="numbers")
def plain(frame):
    return frame.withColumn("n", F.udf(raised, "long")("n"))
"""
"""A function that Spark sends by its name alone, so that workers import the module for it."""
MADE_ONCE = (
    NAMED.replace("def raised", "@F.udf(LongType())\ndef raised")
    .replace('F.udf(raised, "long")', "raised")
    .replace("from streamgraft", "from pyspark.sql.types import LongType\nfrom streamgraft")
)
"""One that is there before any plan, and that PySpark would keep as the first plan had it."""
VERSION = 1_000_000
"""Added to each number by each of two modules, as often as the version says: a worker that had
modules of two versions would show."""


async def test_the_driver_swaps_its_code(
    stage: Any, load: Callable[[int], Any], output: Any
) -> None:
    """Each record passes one version, once; one that can't be imported is reported and left."""

    def metadata(version: int, module: str = MODULE) -> Any:
        shift = f"SHIFT = {version * VERSION}\n"
        digest = stage.write_bundle(module, numbers_early=shift, numbers_late=shift)
        plain = stage.metadata()
        return plain.model_copy(update={"code": code_of_pe(ADL, digest, plain)})

    def versions(values: dict[str, list[int]]) -> list[int]:
        return sorted({n // VERSION for numbers in values.values() for n in numbers[-3:]})

    first = metadata(0)
    pe = await stage.start(0, [0, 1])
    await stage.write_content(pe, first, "1")
    await pe.running(0, 1)
    source = load(200)
    output.until(lambda values: sum(map(len, values.values())) > 200)
    for version in (1, 2):
        await pe.replan(metadata(version), "1", f"v{version}")
        await pe.until(
            lambda status, version=version: status.content_id == content("1", f"v{version}")
        )
        await asyncio.to_thread(
            output.until, lambda values, version=version: versions(values) == [2 * version]
        )
    await pe.replan(metadata(3, MODULE + "1 / 0\n"), "1", "v3")
    broken = await pe.until(lambda status: "ZeroDivisionError" in status.message)
    assert broken.content_id == content("1", "v2")
    stage.write_bundle(MODULE, numbers_early="", numbers_late="")
    await pe.replan(metadata(4).model_copy(update={"code": "another"}), "1", "v4")
    await pe.until(lambda status: "other code for plain" in status.message)
    count = sum(map(len, output.values.values()))
    output.until(lambda values: sum(map(len, values.values())) > count + 100)
    assert versions(output.values) == [4]
    sent = source.stop()
    output.until(lambda values: {key: len(numbers) for key, numbers in values.items()} == sent)
    for key, numbers in output.values.items():
        assert [n % VERSION for n in numbers] == list(range(sent[key]))
        assert numbers == sorted(numbers)
        assert {n // VERSION for n in numbers} == {0, 2, 4}


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(NAMED, id="imported"),
        pytest.param(MADE_ONCE, id="made once", marks=pytest.mark.long),
    ],
)
async def test_functions_in_workers_have_the_values_of_the_job(
    stage: Any, load: Callable[[int], Any], output: Any, module: str
) -> None:
    """Also those that it gets while it runs."""
    digest = stage.write_bundle(module)
    plain = stage.metadata()
    plain = plain.model_copy(update={"code": code_of_pe(ADL, digest, plain)})

    def raised(version: int) -> Any:
        return plain.model_copy(update={"parameters": {"least": str(version * VERSION)}})

    pe = await stage.start(0, [0, 1])
    await stage.write_content(pe, raised(1), "1")
    await pe.running(0, 1)
    source = load(200)
    for version in (1, 2):
        await pe.replan(raised(version), str(version))
        await asyncio.to_thread(
            output.until,
            lambda values, version=version: (
                {n // VERSION for numbers in values.values() for n in numbers[-3:]} == {version}
            ),
        )
    source.stop()
    assert {n // VERSION for numbers in output.values.values() for n in numbers} == {1, 2}
