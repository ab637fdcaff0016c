"""How rows become Kafka records: SQL expressions, as text. Pure.

Records between PEs: value = JSON object of the row; key = the text of the key column, or a JSON
array of their texts if there are several (docs/develop/contracts.md, "Kafka").
"""

from collections.abc import Mapping, Sequence

from streamgraft_common.pe_metadata import OutputPort

# Spark's default writes milliseconds only, and no seconds of the offsets that zones had in former
# times; it reads both if given no format. How a quote is written in a text is a setting of Spark's.
_TIMESTAMP = "'yyyy-MM-dd', chr(39), 'T', chr(39), 'HH:mm:ss.SSSSSS"
_TIMESTAMP_OPTIONS = (
    f"map('timestampFormat', concat({_TIMESTAMP}XXXXX'),"
    f" 'timestampNTZFormat', concat({_TIMESTAMP}')"
)

HEADERS_TYPE = "array<struct<key: string, value: binary>>"


def quoted(column: str) -> str:
    """Return a column's name as SQL takes it."""
    return "`" + column.replace("`", "``") + "`"


def key_expression(columns: Sequence[str], floats: Mapping[str, str], *, external: bool) -> str:
    """Return the record key; `floats`: the types of columns that are floating-point numbers.

    Between PEs no key column may make a null key: Kafka would spread such records over all
    partitions, and a key group must stay together. So must 0.0 and -0.0, which are one key.
    """
    if not columns:
        return "cast(null as binary)"
    values = [quoted(column) for column in columns]
    if not external:
        values = [
            f"{value} + cast(0 as {floats[column]})" if column in floats else value
            for column, value in zip(columns, values, strict=True)
        ]
    texts = [f"cast({value} as string)" for value in values]
    if len(texts) > 1:
        return f"cast(to_json(array({', '.join(texts)})) as binary)"
    text = texts[0] if external else f"coalesce({texts[0]}, '')"
    return f"cast({text} as binary)"


def value_expression(*, nulls: bool = False) -> str:
    """Return the record value: the row as a JSON object, timestamps in microseconds.

    `nulls`: whether columns that are null are in it, for who has another value for what is missing.
    """
    options = f"{_TIMESTAMP_OPTIONS}, 'ignoreNullFields', '{str(not nulls).lower()}')"
    return f"cast(to_json(struct(*), {options}) as binary)"


def record_expression(
    port: OutputPort,
    target: int,
    raw_columns: Sequence[str] | None,
    floats: Mapping[str, str],
    *,
    nulls: bool = False,
) -> str:
    """Return the struct of a record that leaves by a port, with the number of its target.

    Its partition is yet to come (partition_expression): 0 is the shard's own. If it is negative,
    the sink finds one among so many (scala/exactly_once); null: Kafka's partitioner does, among all
    that the topic has. Between PEs somebody may have added some, which nobody reads.
    `raw_columns`: the columns of a stream that has Kafka's own form, else None; `floats`: as in
    `key_expression`; `nulls`: as in `value_expression`.
    """
    if raw_columns is None:
        key = key_expression(port.key, floats, external=port.external)
        value = value_expression(nulls=nulls)
        headers = "null"
    else:
        key = "cast(`key` as binary)" if "key" in raw_columns else "null"
        value = "cast(`value` as binary)"
        headers = "`headers`" if "headers" in raw_columns else "null"
        if port.key:
            key = key_expression(port.key, floats, external=True)
    partition = "null" if port.external or port.partitions is None else str(-port.partitions)
    if port.keep_partition:
        partition = "0"
    topic = port.topic.replace("'", "\\'")
    fields = {
        "target": str(target),
        "topic": f"'{topic}'",
        "key": f"cast({key} as binary)",
        "value": value,
        "partition": f"cast({partition} as int)",
        "headers": f"cast({headers} as {HEADERS_TYPE})",
    }
    return f"struct({', '.join(f'{text} as {name}' for name, text in fields.items())})"


def partition_expression(shards: Sequence[int]) -> str:
    """Return the partition of a record, maybe its shard's; `shards`: of the query, in order.

    The rows of the j-th of several shards are Spark's partition j (scala/shards).
    """
    own = str(shards[0])
    if len(shards) > 1:
        own = f"element_at(array({', '.join(map(str, shards))}), spark_partition_id() + 1)"
    return f"if(partition = 0, {own}, partition)"


def exploded(records: Sequence[tuple[str, str | None]]) -> str:
    """Return a generator of all records of one row: (struct, condition or None for always).

    Each condition ends its line, as it may end with a comment.
    """
    items = [
        record if condition is None else f"case when {condition}\n then {record} end"
        for record, condition in records
    ]
    return f"explode(filter(array({', '.join(items)}), record -> record is not null))"
