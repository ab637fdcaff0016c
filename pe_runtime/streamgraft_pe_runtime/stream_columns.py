"""Whether a stream has the columns that other PEs read from it.

They read JSON with the schema that the bundle has for the stream, and nulls where a value is
missing or of another type. A function can give other columns than it did in the build: by a
parameter or a setting of Spark that the job alone has.
"""

from pyspark.sql.types import DoubleType, FloatType, StructType

from streamgraft_common.columns import columns_of, lacking
from streamgraft_common.text import listed


def floating(schema: StructType) -> dict[str, str]:
    """Return the types of the columns that are floating-point numbers."""
    return {
        field.name: field.dataType.simpleString()
        for field in schema.fields
        if isinstance(field.dataType, FloatType | DoubleType)
    }


class OtherColumns(Exception):
    """A stream lacks columns that others read."""


def check_columns(operator: str, told: StructType, found: StructType) -> None:
    """Raise OtherColumns if what an operator gives lacks columns that it is told to have.

    More columns do no harm, nor does a narrower number.
    """
    before, now = (columns_of(schema.jsonValue()) or {} for schema in (told, found))
    if not (missing := lacking(before, now)):
        return
    more = [f"{name} {kind}" for name, kind in now.items() if before.get(name) != kind]
    raise OtherColumns(
        f"{operator} gives other columns than the bundle says, which others would read as nulls"
        f" (missing: {listed(missing)}; there are: {listed(more)}). Build it with the"
        " job's parameters (`streamgraft build --param`), and settings of Spark that change types"
        " in the application; give a source the schema that it has"
    )
