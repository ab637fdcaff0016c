"""Where the state of shards is, in the logs of the queries that run them. Pure.

A query that runs a shard alone numbers the versions of its state as its batches: batch n leaves
version n + 1. A query over several shards goes on in each shard's own versions; which one belongs
to a shard is an id, `<version>_<run>`, in the commit log (Spark's checkpointFormatVersion 2), and
before the first batch in `shards.json` (scala/shards/ShardStateStoreProvider.scala).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from streamgraft_common.pe_metadata import HDFS, STATE_STORE_PROVIDER
from streamgraft_pe_runtime.spark_log import NotJoinable, Position

FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDER = "org.apache.spark.sql.streamgraft.ShardStateStoreProvider"
"""Runs Spark's own providers, one for each shard."""
_IDS = "stateUniqueIds"
_ALONE, _JOINT = ("v1", "v1"), ("v1", "v2")


@dataclass(frozen=True)
class Description:
    """What `shards.json` says of a query."""

    shards: list[int]
    """Its shards."""
    provider: str | None = None
    """Class that keeps the state; None for a query without."""
    state: Mapping[int, str] | None = None
    """Shard → id of the state that it begins with; a shard that is not here has none yet."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what a file says. Raises ValueError."""
        found = json.loads(text)
        if isinstance(found, list):
            return cls(found)
        state = {int(shard): at for shard, at in found["state"].items()}
        return cls(found["shards"], found["provider"], state)

    def text(self) -> str:
        """Return the file's text."""
        if self.provider is None:
            return json.dumps(self.shards)
        return json.dumps(
            {"shards": self.shards, "provider": self.provider, "state": dict(self.state or {})}
        )

    def ended(self, position: Position) -> Position:
        """Return where a query ended, with its shards' state."""
        if self.provider is None:
            return position
        state = {**(self.state or {}), **_written((position.commit or {}).get(_IDS), self.shards)}
        some = {shard: at for shard, at in state.items() if version(at)}
        return replace(position, state=some)


def settings(shards: int) -> dict[str, str]:
    """Return Spark's settings for a query with state over so many shards."""
    return {PARTITIONS: str(shards), STATE_STORE_PROVIDER: PROVIDER, FORMAT: "2"}


def version(state: str) -> int:
    """Return the shard's own version in an id."""
    return int(state.partition("_")[0])


def ended_alone(position: Position, shard: int, batch: int) -> Position:
    """Return where a query of one shard ended, with its state. Raises NotJoinable."""
    conf = _conf(position)
    if (position.commit or {}).get(_IDS) or conf.get(PARTITIONS, "1") != "1":
        raise NotJoinable(
            f"the state of shard {shard} was begun with other settings ({PARTITIONS}"
            f" {conf.get(PARTITIONS)}, {FORMAT} {conf.get(FORMAT)}): give the job these again"
        )
    return replace(position, state={shard: str(batch + 1)})


def provider(position: Position) -> str:
    """Return what keeps the state of a query that runs a shard alone."""
    found: str = _conf(position).get(STATE_STORE_PROVIDER, HDFS)
    return found


def for_query(position: Position, shards: int) -> Position:
    """Return a position as the logs of a query over so many shards say it."""
    if position.batch is None:
        return position
    commit = {**(position.commit or {}), _IDS: {}}
    return _with_conf(replace(position, commit=commit, version=_JOINT), settings(shards))


def in_one_format(position: Position) -> Position:
    """Return a position in the format of a query over several shards, whoever has written it."""
    return replace(position, version=_JOINT) if position.version == _ALONE else position


def for_one(position: Position, state_provider: str) -> Position:
    """Return a position as the logs of a query say it that runs a shard alone."""
    commit = {name: value for name, value in (position.commit or {}).items() if name != _IDS}
    conf = {PARTITIONS: "1", STATE_STORE_PROVIDER: state_provider, FORMAT: "1"}
    return _with_conf(replace(position, commit=commit, version=_ALONE), conf)


def _conf(position: Position) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (position.batch or {}).get("conf", {})
    return found


def _with_conf(position: Position, conf: Mapping[str, str]) -> Position:
    batch = {**(position.batch or {}), "conf": {**_conf(position), **conf}}
    return replace(position, batch=batch)


def _written(ids: Mapping[str, Any] | None, shards: Sequence[int]) -> dict[int, str]:
    """Return the state of shards by what a commit says of each operator's partitions and stores."""
    found: dict[int, set[str]] = {}
    for partitions in (ids or {}).values():
        for shard, stores in zip(shards, partitions, strict=True):
            found.setdefault(shard, set()).update(stores)
    for shard, different in found.items():
        if len(different) > 1:
            raise NotJoinable(f"the state of shard {shard} has several versions: {different}")
    return {shard: state for shard, (state,) in found.items()}
