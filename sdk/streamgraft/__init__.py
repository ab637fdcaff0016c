"""Streamgraft: streaming applications on Kubernetes that scale themselves without pausing."""

from streamgraft._application import Application
from streamgraft._builder import build
from streamgraft._encodings import Avro, Protobuf
from streamgraft._errors import (
    ApplicationError,
    BuildError,
    BundleTooLarge,
    CyclicGraph,
    DuplicateName,
    InvalidApplication,
    InvalidArgument,
    InvalidName,
    InvalidSignature,
    MisplacedSource,
    MissingSource,
    ModuleFailed,
    NestedRegion,
    NotSerializable,
    PlanningFailed,
    SchemaMismatch,
    StreamgraftError,
    UnknownParameter,
    UnknownStream,
)
from streamgraft._location import Location
from streamgraft._port_address import PortAddress, resolve
from streamgraft._streams import Parameter, Stream
from streamgraft._surroundings import data_path, properties, shutdown_pe
from streamgraft._write_once import write_once
from streamgraft_common.adl import Autoscaling, Period, Placement
from streamgraft_common.batches import Batch, Cut

__all__ = [
    "Application",
    "ApplicationError",
    "Autoscaling",
    "Avro",
    "Batch",
    "BuildError",
    "BundleTooLarge",
    "Cut",
    "CyclicGraph",
    "DuplicateName",
    "InvalidApplication",
    "InvalidArgument",
    "InvalidName",
    "InvalidSignature",
    "Location",
    "MisplacedSource",
    "MissingSource",
    "ModuleFailed",
    "NestedRegion",
    "NotSerializable",
    "Parameter",
    "Period",
    "Placement",
    "PlanningFailed",
    "PortAddress",
    "Protobuf",
    "SchemaMismatch",
    "Stream",
    "StreamgraftError",
    "UnknownParameter",
    "UnknownStream",
    "build",
    "data_path",
    "properties",
    "resolve",
    "shutdown_pe",
    "write_once",
]
