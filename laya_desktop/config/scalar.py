"""Scalars as they were typed.

YAML 1.1 reads ``no`` as False, ``0123`` as 83 and ``12:30`` as 750. Whether that is what the user meant
depends on the field, which the reader does not know; so it hands over both, and the schema picks.
"""

from pydantic_core import PydanticCustomError


class Scalar(str):
    """The text of an unquoted number, truth value or null; `value` is what YAML makes of it."""

    __slots__ = ("value",)

    value: bool | int | float | None

    def __new__(cls, text: str, value: bool | int | float | None) -> "Scalar":
        scalar = super().__new__(cls, text)
        scalar.value = value
        return scalar

    def __getnewargs__(self) -> tuple[str, bool | int | float | None]:  # type: ignore[override]
        """For copies."""
        return str(self), self.value


def value_of(item: object) -> object:
    """What a field that is not text gets. Refuses notations that YAML 1.1 reads in a surprising way."""
    if not isinstance(item, Scalar):
        return item
    if type(item.value) is int and str(item.value) != item.removeprefix("+"):
        raise PydanticCustomError("notation", f"{item!s} is not a plain decimal number")
    return item.value


def literal(item: object) -> object:
    """What a text field gets: the text as typed."""
    return str(item) if isinstance(item, Scalar) else item
