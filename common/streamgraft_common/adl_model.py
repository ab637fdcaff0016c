"""What the parts of an application description have in common."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class AdlModel(BaseModel):
    """Frozen, camelCase in JSON, unknown fields rejected."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )
