"""What is wrong with a config file, as data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """`line` and `column` count from 1; both are 0 if the problem concerns the file as a whole. `field` is a
    path such as ``models[0].name``, empty if the problem lies in the notation."""

    file: str
    message: str
    line: int = 0
    column: int = 0
    field: str = ""
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.sentence()}"

    def sentence(self) -> str:
        """The problem without its place in the file."""
        field = f"{self.field}: " if self.field else ""
        return f"{field}{self.message}. {self.hint}".strip()


Path = tuple[str | int, ...]
"""Where a value is in the file: keys and list positions from the root."""


def field_name(path: Path) -> str:
    """``("models", 0, "name")`` as ``models[0].name``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
