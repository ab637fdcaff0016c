"""Exports and imports as the application description has them."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from streamgraft_common.adl_model import AdlModel
from streamgraft_common.shared_streams.expressions import ExpressionError, parse
from streamgraft_common.shared_streams.subscriptions import check_properties


class ExportDeclaration(AdlModel):
    """How a stream is published for other jobs."""

    name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    properties: dict[str, int | float | str | list[int] | list[float] | list[str]] = {}
    allow_filter: bool = True
    """Whether imports may have a filter."""
    namespaces: list[str] = []
    """Other namespaces whose jobs may import it; `*`: all."""
    partitions: int = Field(default=1, ge=1)
    """Partitions of its topic."""

    @model_validator(mode="after")
    def _is_found(self) -> Self:
        if self.name is None and not self.properties:
            raise ValueError("an export needs a name or properties, by which imports find it")
        if problem := check_properties(self.properties):
            raise ValueError(problem)
        return self


class ImportDeclaration(AdlModel):
    """Which exports of other jobs a stream is of."""

    name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    subscription: str | None = None
    """Condition on the properties of exports."""
    filter: str | None = None
    """Condition on rows."""
    from_job: str | None = None
    """Job whose exports match. None: any."""
    namespaces: list[str] = []
    """Other namespaces whose exports match, if they allow it; `*`: all."""
    starting_offsets: Literal["earliest", "latest"] = "earliest"
    """Where an export begins that was not connected before."""

    @model_validator(mode="after")
    def _wants_something(self) -> Self:
        if (self.name is None) == (self.subscription is None):
            raise ValueError("an import needs either the name of an export or a subscription")
        for what, text in (("subscription", self.subscription), ("filter", self.filter)):
            try:
                parse(text) if text is not None else None
            except ExpressionError as error:
                raise ValueError(f"{what} {text!r}, {error}") from error
        return self
