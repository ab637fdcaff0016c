"""All that an operator with state makes counts as used, whatever the operators behind it select.

Spark leaves out of a state what nobody uses: an operator fused behind an aggregation that selected
other columns would change the state's schema, and the query would not start from its checkpoint.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, VariantType

_MODULUS = 2


def all_kept(frame: DataFrame) -> DataFrame:
    """Return the frame behind a condition on all of its columns.

    Every row meets it, which Spark can't see: no rule of its optimizer knows the range of a modulo.
    """
    columns = [_hashable(field) for field in frame.schema.fields]
    return frame.where(F.abs(F.hash(*columns) % _MODULUS) < _MODULUS) if columns else frame


def _hashable(field: StructField) -> Column:
    column = F.col("`{}`".format(field.name.replace("`", "``")))
    return F.to_json(F.struct(column)) if _has_map(field.dataType) else column


def _has_map(kind: DataType) -> bool:
    """Return whether values of a type hold maps or variants, of which Spark takes no hash."""
    if isinstance(kind, ArrayType):
        return _has_map(kind.elementType)
    if isinstance(kind, StructType):
        return any(_has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType | VariantType)
