"""What the fields of the schema are made of.

Values that come from a file keep the text that was typed (`Scalar`), so that a model named ``no`` or
``0123`` gets that name, while a number that is written as text is refused.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from laya_desktop.config.scalar import Scalar, literal, value_of
from laya_desktop.core.types import AUTO_MODEL

Apply = Literal["live", "reload", "restart"]


def setting(
    default: Any, description: str, apply: Apply, *, effective: bool | list[str] = True, **bounds: Any
) -> Any:
    extra: dict[str, Any] = {"apply": apply, "effective": effective}
    return Field(default, description=description, json_schema_extra=extra, **bounds)


def one_or_more(value: object) -> object:
    """A single item where a list is expected means a list of one."""
    return [value] if isinstance(value, str | dict) and not is_null(value) else value


def is_null(value: object) -> bool:
    return isinstance(value, Scalar) and value.value is None


def null_is_empty(value: object) -> object:
    """A list of which every item is commented out."""
    return [] if is_null(value) else value


def empty_is_none(value: object) -> object:
    return None if is_null(value) else value


def _name(value: str) -> str:
    if value.casefold() == AUTO_MODEL:
        raise PydanticCustomError("reserved", "the name 'auto' is reserved: it asks the router to choose")
    if value != value.strip() or not value.isprintable():
        raise PydanticCustomError("name", "a name has no spaces at its ends and no control characters")
    return value


Integer = Annotated[int, Field(strict=True), BeforeValidator(value_of)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False), BeforeValidator(value_of)]
Switch = Annotated[bool, Field(strict=True), BeforeValidator(value_of)]
Text = Annotated[str, BeforeValidator(literal), Field(max_length=4096)]
Name = Annotated[str, BeforeValidator(literal), Field(min_length=1, max_length=200), AfterValidator(_name)]
Keyword = Annotated[str, BeforeValidator(literal), Field(min_length=1, max_length=200)]
Keywords = Annotated[tuple[Keyword, ...], BeforeValidator(one_or_more), Field(min_length=1, max_length=500)]
Names = Annotated[tuple[Name, ...], BeforeValidator(null_is_empty)]
Words = Annotated[tuple[Keyword, ...], BeforeValidator(null_is_empty)]
OptionalInteger = Annotated[Integer | None, BeforeValidator(empty_is_none)]
OptionalNumber = Annotated[Number | None, BeforeValidator(empty_is_none)]
OptionalText = Annotated[Text | None, BeforeValidator(empty_is_none)]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_section(cls, data: object) -> object:
        """A section that is written without content has its defaults."""
        return {} if is_null(data) else data
