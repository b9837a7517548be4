"""The leaves of a Markdown text, and what changes of them. Pure values."""

from enum import Enum, auto
from typing import NamedTuple

from laya_desktop.ui.chat.inline import Span


class Kind(Enum):
    PARAGRAPH = auto()
    HEADING = auto()
    CODE = auto()
    TABLE = auto()
    RULE = auto()
    PLAIN = auto()


Row = tuple[tuple[Span, ...], ...]


class Block(NamedTuple):
    """One leaf of the text.

    `marker` is the bullet or number of a block that begins a list item, `depth` its list nesting and `quote`
    its quote nesting. With `joins` it continues the block before it: text of the same paragraph, code of the
    same fence (which brings its newline along), rows of the same table. `closed` is false while a fence may
    go on. The first row of a table that does not join is its header; `aligns` are "", left, center or right.
    """

    kind: Kind
    spans: tuple[Span, ...] = ()
    level: int = 0
    quote: int = 0
    depth: int = 0
    marker: str = ""
    language: str = ""
    closed: bool = True
    joins: bool = False
    rows: tuple[Row, ...] = ()
    aligns: tuple[str, ...] = ()


class Change(NamedTuple):
    """Keep the first `keep` blocks, put `blocks` behind them. The first `committed` blocks never change."""

    keep: int
    blocks: list[Block]
    committed: int
