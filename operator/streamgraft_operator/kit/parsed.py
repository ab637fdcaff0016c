"""Resources as models: each version of an object is validated once, however often it is read."""

from typing import Generic, Literal, TypeVar

from pydantic import ValidationError

from streamgraft_common.kube.client import Object
from streamgraft_common.kube.store import Key, key_of
from streamgraft_common.resources import (
    ConsistentRegionSpec,
    ConsistentRegionStatus,
    ExportSpec,
    ExportStatus,
    HostPoolSpec,
    HostPoolStatus,
    ImportSpec,
    ImportStatus,
    JobSpec,
    JobStatus,
    ParallelRegionSpec,
    ParallelRegionStatus,
    ProcessingElementSpec,
    ProcessingElementStatus,
    SavepointSpec,
    SavepointStatus,
    SuiteSpec,
    SuiteStatus,
)
from streamgraft_common.resources.base import Model

REMEMBERED = 5_000
"""Objects of a kind whose last version read is kept as a model."""

_ABSENT: Object = {}

_Model = TypeVar("_Model", bound=Model)


class Reader(Generic[_Model]):
    """Reads one part of the objects of a kind. Objects must not be changed in place.

    A part that is absent is read like an empty one. Raises pydantic.ValidationError.
    """

    def __init__(self, model: type[_Model], part: Literal["spec", "status"]) -> None:
        self._model = model
        self._part = part
        self._read: dict[Key, tuple[Object, _Model]] = {}

    def __call__(self, item: Object) -> _Model:
        """Return the part of an object as a model."""
        part = item.get(self._part) or _ABSENT
        key = key_of(item)
        known = self._read.get(key)
        if known is not None and known[0] is part:
            return known[1]
        model = self._model.model_validate(part)
        self._read[key] = part, model
        if len(self._read) > REMEMBERED:
            del self._read[next(iter(self._read))]
        return model


def obstacle(read: Reader[_Model], item: Object) -> str:
    """Return why a part of an object can't be read; "" if it can.

    The definitions let a little pass that the models refuse, such as names of time zones.
    """
    try:
        read(item)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return ""


job_spec = Reader(JobSpec, "spec")
job_status = Reader(JobStatus, "status")
pe_spec = Reader(ProcessingElementSpec, "spec")
pe_status = Reader(ProcessingElementStatus, "status")
region_spec = Reader(ParallelRegionSpec, "spec")
region_status = Reader(ParallelRegionStatus, "status")
savepoint_spec = Reader(SavepointSpec, "spec")
savepoint_status = Reader(SavepointStatus, "status")
consistent_region_spec = Reader(ConsistentRegionSpec, "spec")
consistent_region_status = Reader(ConsistentRegionStatus, "status")
export_spec = Reader(ExportSpec, "spec")
export_status = Reader(ExportStatus, "status")
import_spec = Reader(ImportSpec, "spec")
import_status = Reader(ImportStatus, "status")
host_pool_spec = Reader(HostPoolSpec, "spec")
host_pool_status = Reader(HostPoolStatus, "status")
suite_spec = Reader(SuiteSpec, "spec")
suite_status = Reader(SuiteStatus, "status")
