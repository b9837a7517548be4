"""From the parser's tokens to blocks, with the places where the text may be cut. Pure."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from markdown_it.token import Token

from laya_desktop.ui.chat.blocks import Block, Kind, Row
from laya_desktop.ui.chat.inline import Span, spans_of

_TASK = re.compile(r"\[([ xX])\]\s+")
_BULLETS = ("•", "◦", "▪")


@dataclass(slots=True)
class Level:
    """An open list while walking. `shift` is an item's true number minus the one in the source."""

    ordered: bool
    shift: int = 0
    number: int | None = None
    line: int = 0


class Cut(NamedTuple):
    """The tail may begin before `line`, with `blocks` blocks of this parse in front of it. `items` are the
    lines of the list items around it, `table` the header's line when it is a row."""

    line: int
    blocks: int
    items: tuple[int, ...]
    shifts: tuple[int, ...]
    table: int | None = None


@dataclass(slots=True)
class Parsed:
    lines: list[str]
    first: int  # the tail's first line
    blocks: list[Block] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    last: Token | None = None  # the last leaf
    last_text: str = ""  # its source, for paragraphs and headings
    inside: Cut | None = None  # the containers around the last leaf


class Walk:
    """Turns the parser's tokens into blocks, and notes where the tail may be cut."""

    def __init__(self, parsed: Parsed, shifts: tuple[int, ...], final: bool) -> None:
        self._parsed = parsed
        self._shifts = shifts
        self._final = final
        self._levels: list[Level] = []
        self._quote = 0
        self._marker = ""
        self._cut_line = -1

    def run(self, tokens: list[Token]) -> None:
        skip_to = 0
        for at, token in enumerate(tokens):
            if at < skip_to:
                continue
            match token.type:
                case "bullet_list_open" | "ordered_list_open":
                    self._open_list(token)
                case "bullet_list_close" | "ordered_list_close":
                    self._levels.pop()
                case "list_item_open":
                    self._open_item(token)
                case "list_item_close":
                    self._flush_marker()
                case "blockquote_open":
                    self._quote += 1
                case "blockquote_close":
                    self._quote -= 1
                case "paragraph_open":
                    self._text(token, tokens[at + 1], Kind.PARAGRAPH)
                case "heading_open":
                    self._text(token, tokens[at + 1], Kind.HEADING, level=int(token.tag[1]))
                case "fence" | "code_block":
                    self._code(token)
                case "hr":
                    self._leaf(token, Block(Kind.RULE))
                case "table_open":
                    skip_to = self._table(tokens, at)

    def _line(self, token: Token) -> int:
        return token.map[0] if token.map else 0

    def _open_list(self, token: Token) -> None:
        self._flush_marker()
        level = Level(token.type == "ordered_list_open")
        depth = len(self._levels)
        # Only the list that the tail begins in goes on counting where the committed part ended.
        if self._line(token) <= self._parsed.first and depth < len(self._shifts):
            level.shift = self._shifts[depth]
        self._levels.append(level)

    def _open_item(self, token: Token) -> None:
        level = self._levels[-1]
        if level.ordered:
            literal = int(token.info or 1)
            level.number = literal + level.shift if level.number is None else level.number + 1
            level.shift = level.number - literal
            self._marker = f"{level.number}."
        else:
            self._marker = _BULLETS[min(len(self._levels), len(_BULLETS)) - 1]
        level.line = self._line(token)
        self._note_cut(level.line, self._levels[:-1])

    def _flush_marker(self) -> None:
        """An item without text of its own still shows its marker."""
        if self._marker and self._levels and self._levels[-1].line >= self._parsed.first:
            self._parsed.blocks.append(self._placed(Block(Kind.PARAGRAPH)))
        self._marker = ""

    def _note_cut(self, line: int, around: list[Level], table: int | None = None) -> None:
        if line == self._cut_line:
            return
        self._cut_line = line
        self._parsed.cuts.append(self._cut(line, around, table))

    def _cut(self, line: int, around: list[Level], table: int | None = None) -> Cut:
        items = tuple(level.line for level in around)
        shifts = tuple(level.shift for level in self._levels)
        return Cut(line, len(self._parsed.blocks), items, shifts, table)

    def _placed(self, block: Block) -> Block:
        marker, self._marker = self._marker, ""
        return block._replace(quote=self._quote, depth=len(self._levels), marker=marker)

    def _leaf(self, token: Token, block: Block, text: str = "") -> None:
        line = self._line(token)
        block = self._placed(block)
        if line < self._parsed.first:
            return
        self._note_cut(line, self._levels)
        self._parsed.last, self._parsed.last_text = token, text
        self._parsed.inside = self._cut(line, self._levels)
        self._parsed.blocks.append(block)

    def _text(self, token: Token, inline: Token, kind: Kind, level: int = 0) -> None:
        spans = spans_of(inline.children or [])
        if self._marker and spans and (task := _TASK.match(spans[0].text)):
            self._marker = "☐" if task.group(1) == " " else "☑"
            spans = (spans[0]._replace(text=spans[0].text[task.end() :]), *spans[1:])
        self._leaf(token, Block(kind, spans, level=level), inline.content)

    def _code(self, token: Token) -> None:
        closed = True
        if token.type == "fence" and token.map and not self._final:
            last = self._parsed.lines[token.map[1] - 1].strip(" \t>")
            closed = (
                token.map[1] - 1 > token.map[0]
                and len(last) >= len(token.markup)
                and not last.strip(token.markup[0])
            )
        language = token.info.split()[0] if token.info.strip() else ""
        code = token.content.removesuffix("\n")
        spans = (Span(code),) if code else ()
        self._leaf(token, Block(Kind.CODE, spans, language=language, closed=closed))

    def _table(self, tokens: list[Token], at: int) -> int:
        """Add a table: what is surely finished, and its last row apart from it. Where the walk goes on."""
        start = self._line(tokens[at])
        rows: list[tuple[int, Row]] = []
        cells: list[tuple[Span, ...]] = []
        aligns: list[str] = []
        while tokens[at].type != "table_close":
            token = tokens[at]
            if token.type == "tr_open":
                cells = []
                line = self._line(token)
            elif token.type == "inline":
                cells.append(spans_of(token.children or []))
            elif token.type == "th_open":
                aligns.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
            elif token.type == "tr_close" and line >= self._parsed.first:
                rows.append((line, tuple(cells)))
            at += 1
        table = Block(Kind.TABLE, aligns=tuple(aligns), joins=start < self._parsed.first)
        if not table.joins:
            self._note_cut(start, self._levels)
        self._parsed.last, self._parsed.last_text, self._parsed.inside = None, "", None
        body = len(rows) - (0 if table.joins else 1)
        finished = rows[:-1] if body > 0 else rows
        table = self._placed(table)
        if finished:
            self._parsed.blocks.append(table._replace(rows=tuple(row for _, row in finished)))
        if body > 0:
            self._note_cut(rows[-1][0], self._levels, start)
            self._parsed.blocks.append(table._replace(rows=(rows[-1][1],), joins=True, marker=""))
        return at + 1
