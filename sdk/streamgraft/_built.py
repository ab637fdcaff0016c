"""What the building process hands back."""

from pydantic import BaseModel

from streamgraft import _errors as errors
from streamgraft._location import Location
from streamgraft_common.adl import Adl


class Finding(BaseModel):
    """One error, with the name of its class."""

    kind: str
    file: str | None
    line: int | None
    problem: str
    remedy: str

    @classmethod
    def of(cls, error: errors.ApplicationError) -> "Finding":
        """Return the finding of an error."""
        place = error.location
        return cls(
            kind=type(error).__name__,
            file=place.file if place else None,
            line=place.line if place else None,
            problem=error.problem,
            remedy=error.remedy,
        )

    def error(self) -> errors.ApplicationError:
        """Return the error again."""
        kind: type[errors.ApplicationError] = getattr(errors, self.kind)
        place = Location(self.file, self.line) if self.file and self.line else None
        return kind(place, self.problem, self.remedy)


class Built(BaseModel):
    """The description of the application, or what is wrong with it."""

    adl: Adl | None = None
    notices: list[str] = []
    modules: list[str] = []
    """Files below the application's folder that were imported, relative to it."""
    not_installed: dict[str, str] = {}
    """Files of all modules that were imported and are not installed, by the modules' names."""
    errors: list[Finding] = []
    failure: str = ""
    """Why nothing can be said about the application."""
