"""What can be wrong with an application, and how it is reported.

StreamgraftError            everything that this package reports to its user
  ApplicationError          the application is wrong: where, what, and what to do
    InvalidName             a name that Kubernetes and Kafka would not take
    DuplicateName           two operators, streams or regions of one name
    InvalidArgument         a value that makes no sense (a width above the maximum)
    InvalidSignature        a function with the wrong number or type of parameters
    UnknownStream           an input that nothing makes
    UnknownParameter        a submission-time value for a parameter that does not exist
    CyclicGraph             operators that wait for each other
    NestedRegion            a region inside a region
    MissingSource           nothing would ever flow
    MisplacedSource         a source inside a region
    NotSerializable         a function that holds something that cannot be sent to a worker
    SchemaMismatch          columns that are missing, doubled or of an unsupported type
    PlanningFailed          Spark, or the function itself, rejects what the function does
    ModuleFailed            the module cannot be imported or has not exactly one application
    InvalidApplication      several of these at once
  BuildError                the bundle cannot be made, though the application is right
    BundleTooLarge          it does not fit into a ConfigMap
"""

from collections.abc import Sequence

from streamgraft._location import Location


class StreamgraftError(Exception):
    """Everything that this package reports to its user."""


class ApplicationError(StreamgraftError):
    """The application is wrong. The text is `file:line: problem: remedy`."""

    def __init__(self, location: Location | None, problem: str, remedy: str = "") -> None:
        place = f"{location}: " if location else ""
        advice = f": {remedy}" if remedy else ""
        super().__init__(f"{place}{problem.removesuffix('.') if remedy else problem}{advice}")
        self.location = location
        self.problem = problem
        self.remedy = remedy

    @property
    def errors(self) -> tuple["ApplicationError", ...]:
        """The single errors: this one, or those that were found together."""
        return (self,)


class InvalidName(ApplicationError):
    """A name that Kubernetes and Kafka would not take."""


class DuplicateName(ApplicationError):
    """Two operators, streams or regions of one name."""


class InvalidArgument(ApplicationError):
    """A value that makes no sense."""


class InvalidSignature(ApplicationError):
    """A function with the wrong number or type of parameters."""


class UnknownStream(ApplicationError):
    """An input that nothing makes."""


class UnknownParameter(ApplicationError):
    """A submission-time value for a parameter that does not exist."""


class CyclicGraph(ApplicationError):
    """Operators that wait for each other."""


class NestedRegion(ApplicationError):
    """A region inside a region."""


class MissingSource(ApplicationError):
    """Nothing would ever flow."""


class MisplacedSource(ApplicationError):
    """A source inside a region."""


class NotSerializable(ApplicationError):
    """A function that holds something that cannot be sent to a worker."""


class SchemaMismatch(ApplicationError):
    """Columns that are missing, doubled or of an unsupported type."""


class PlanningFailed(ApplicationError):
    """Spark, or the function itself, rejects what the function does."""


class ModuleFailed(ApplicationError):
    """The module cannot be imported or has not exactly one application."""


class InvalidApplication(ApplicationError):
    """Several errors that were found together; one line each."""

    def __init__(self, errors: Sequence[ApplicationError]) -> None:
        super().__init__(None, "\n".join(map(str, errors)))
        self._errors = tuple(errors)

    @property
    def errors(self) -> tuple[ApplicationError, ...]:
        """The single errors."""
        return self._errors


class BuildError(StreamgraftError):
    """The bundle cannot be made, though the application is right."""


class BundleTooLarge(BuildError):
    """It does not fit into a ConfigMap."""


def raise_all(errors: Sequence[ApplicationError]) -> None:
    """Raise what was found: nothing, the one error, or InvalidApplication."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise InvalidApplication(errors)
