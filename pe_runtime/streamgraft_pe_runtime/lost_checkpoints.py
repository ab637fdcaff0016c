"""Whether the checkpoints of a stage are gone, as of a volume that was made anew under its name.

Without a checkpoint a query reads everything again, with no state, and writes it once more. But
Kafka has the stage's ledgers (scala/exactly_once), and an entry begins with whose it is: so a stage
that has nothing on the volume, while a ledger has batches of it, is not new.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streamgraft_common import names
from streamgraft_common.adl import Operator
from streamgraft_common.pe_metadata import PeMetadata
from streamgraft_pe_runtime.checkpoint_health import CheckpointDamaged
from streamgraft_pe_runtime.kafka_access import jvm_admin
from streamgraft_pe_runtime.targets import Targets

log = logging.getLogger(__name__)

ROLLED_BACK = "rolled-back"
"""File in a shard's folder that was made from a cut, with the uid of the rollback. The cut may be
of before its first batch."""
_LEFT = ("offsets", "sources", ROLLED_BACK)
_NO_RIGHT = "AuthorizationException"
_Brokers = tuple[str, tuple[tuple[str, str], ...]]
"""Their addresses, and the options of a sink there."""


def life_of(stage: Path) -> str:
    """Return what tells a stage from one that had its name before: uid of the job, and folder."""
    return "/".join(stage.parts[-2:])


def has_left(checkpoint: Path) -> bool:
    """Return whether a checkpoint is one that was begun, or put back."""
    return any((checkpoint / name).exists() for name in _LEFT)


def check(stage: Path, written: Callable[[], str | None]) -> None:
    """Raise CheckpointDamaged if a stage has nothing, and yet has written.

    `stage`: its folder; `written` returns a ledger that says so. The volume is shared, so what
    another PE has begun is there as well.
    """
    if any(map(has_left, chain(stage.glob("*"), stage.glob("queries/*")))):
        return
    if ledger := written():
        why = (
            "it is gone, though it has written: to begin anew, cancel the job and submit it again"
            f" ({ledger})"
        )
        raise CheckpointDamaged(stage, why)


def written(
    session: SparkSession, metadata: PeMetadata, operators: Mapping[str, Operator], stage: Path
) -> str | None:
    """Return a ledger that has batches of a stage, None if none has. `operators`: by name."""
    found = (
        _has_written(session, place, options, groups, life_of(stage))
        for (place, options), groups in _ledgers(metadata, operators).items()
    )
    return next(filter(None, found), None)


def _ledgers(pe: PeMetadata, operators: Mapping[str, Operator]) -> dict[_Brokers, set[str]]:
    """Return the ledgers that a stage may have: at the job's brokers and at those of its sinks."""
    found: dict[_Brokers, set[str]] = {}
    for shard in range(pe.shard_count):
        targets = Targets(pe, operators, shard)
        for port in pe.outputs:
            targets.index(port)
        for target in targets.every:
            if own := target.transactional_id:
                brokers = target.bootstrap_servers, tuple(sorted(target.options.items()))
                found.setdefault(brokers, set()).add(names.ledger_group(own))
    return found


def _has_written(
    session: SparkSession,
    place: str,
    options: Iterable[tuple[str, str]],
    ledgers: Iterable[str],
    life: str,
) -> str | None:
    jvm: Any = session._jvm
    spec = jvm.org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec
    groups = jvm.java.util.HashMap()
    for ledger in ledgers:
        groups.put(ledger, spec())
    try:
        with jvm_admin(jvm, place, dict(options)) as admin:
            found = admin.listConsumerGroupOffsets(groups).all().get()
    except Py4JJavaError as error:
        if _NO_RIGHT not in str(error.java_exception):
            raise
        log.info("ledgers can't be looked at: %s", error.java_exception)  # the sink says so better
        return None
    telling = (
        group
        for group in found
        for position in found[group].values()
        if position is not None and _has_batches(position, life)
    )
    group = next(telling, None)
    return group and f"consumer group {group} at {place}"


def _has_batches(position: Any, life: str) -> bool:
    incarnation, _, plan = position.metadata().partition(" ")
    return incarnation.startswith(f"{life}/") and (position.offset() > 0 or "=" in plan)
