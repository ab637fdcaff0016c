"""Whether a stream has the columns that other PEs read from it.

They read JSON with the schema that the bundle has for the stream, and nulls where a value is
missing or of another type. A function can give other columns than it did in the build: by a
parameter or a setting of Spark that the job alone has.
"""

from pyspark.sql.types import DataType, StructField, StructType

from streamgraft_common.text import listed

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_FLOATING = ("float", "double")


class OtherColumns(Exception):
    """A stream lacks columns that others read."""


def check_columns(operator: str, told: StructType, found: StructType) -> None:
    """Raise OtherColumns if what an operator gives lacks columns that it is told to have.

    More columns do no harm, nor does a narrower number.
    """
    kinds = {field.name: field.dataType for field in found.fields}
    lacking = [
        field
        for field in told.fields
        if field.name not in kinds or not _fits(kinds[field.name], field.dataType)
    ]
    if not lacking:
        return
    before = set(map(_text, told.fields))
    more = [text for text in map(_text, found.fields) if text not in before]
    raise OtherColumns(
        f"{operator} gives other columns than the bundle says, which others would read as nulls"
        f" (missing: {listed(map(_text, lacking))}; there are: {listed(more)}). Build it with the"
        " job's parameters (`streamgraft build --param`), and settings of Spark that change types"
        " in the application; give a source the schema that it has"
    )


def _text(field: StructField) -> str:
    return f"{field.name} {field.dataType.simpleString()}"


def _fits(found: DataType, told: DataType) -> bool:
    """Return whether all values of a type can be read as another one."""
    kind, wanted = found.simpleString(), told.simpleString()
    return kind == wanted or any(
        wanted in kinds and kind in kinds[: kinds.index(wanted)] for kinds in (_WHOLE, _FLOATING)
    )
