"""Blocks into a `QTextDocument`, without ever laying out again what is finished. UI thread only.

Qt's layout of a document is incremental by paragraph, but linear in a paragraph's length. So code has one
paragraph per line, and a long paragraph is parted at the beginning of one of its visual lines, which nobody
sees (a *seam*); copying puts it together again.
"""

from collections.abc import Iterator
from typing import NamedTuple

from PySide6.QtCore import QObject, Qt, QUrl
from PySide6.QtGui import (
    QBrush,
    QColor,
    QTextBlock,
    QTextBlockFormat,
    QTextCursor,
    QTextDocument,
    QTextFrameFormat,
    QTextLength,
    QTextOption,
    QTextTable,
    QTextTableFormat,
)

from laya_desktop.ui import theme
from laya_desktop.ui.chat.formats import (
    CODE_PAD,
    INDENT,
    TABLE_PAD,
    CodeLine,
    Formats,
    Prop,
    following,
    gap,
    set_line_height,
    spacer,
)
from laya_desktop.ui.chat.inline import Span, Style
from laya_desktop.ui.chat.markdown import Block, Change, Kind

SEAM_LENGTH = 500
"""Characters after which a paragraph is parted, once it has twice as many."""
_LINE_BREAK = "\u2028"
_NO_BREAK_SPACE = "\xa0"
_TABLE_ROWS = 40  # rows after which a table goes on in another one, because Qt lays out a table as a whole
_TABLE_COLUMNS = 32
_CELL = Block(Kind.PARAGRAPH)
_ALIGNMENTS = {"center": Qt.AlignmentFlag.AlignHCenter, "right": Qt.AlignmentFlag.AlignRight}


class _Start(NamedTuple):
    """What to go back to when a block is taken away: the document's end and state before it came."""

    position: int
    free: bool
    table: QTextTable | None
    rows: int  # of `table`


class AnswerDocument(QTextDocument):
    """The text of one message. `apply` takes what a `MarkdownStream` reports."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setUndoRedoEnabled(False)
        self.setDocumentMargin(0)
        self.formats = Formats()
        self._prepare()
        self._reset()

    def loadResource(self, kind: int, name: QUrl) -> object:
        """Nothing: neither files nor addresses are ever read."""
        return None

    def _prepare(self) -> None:
        self.setDefaultFont(theme.font())
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        option.setTabStopDistance(self.formats.tab_width())
        self.setDefaultTextOption(option)

    def _reset(self) -> None:
        self._cursor = QTextCursor(self)
        self._base = 0  # blocks that never change
        self._before: list[Block] = []  # the last committed block, then the uncommitted ones
        self._starts: list[_Start] = []  # of the uncommitted blocks
        self._free = True  # the last paragraph is empty and not yet anybody's
        self._table: QTextTable | None = None
        self._seams = 0
        self.closed_code: list[int] = []
        """Positions in code whose fence has closed since this list was last emptied."""

    def clear_all(self) -> None:
        """Forget everything."""
        self.clear()
        self._reset()

    # Change

    def apply(self, change: Change) -> None:
        """Make the document show the change."""
        cursor = self._cursor
        cursor.beginEditBlock()
        grown = self._grow(change)
        if not grown:
            self._drop_from(change.keep)
        for at, block in enumerate(change.blocks[grown:], change.keep + grown):
            rows = self._table.rows() if self._table is not None else 0
            self._starts.append(_Start(self._end(), self._free, self._table, rows))
            self._insert(block)
            self._before.append(block)
            if block.kind is Kind.CODE and block.closed and at < change.committed:
                self.closed_code.append(self._end())
        if self._free and not self.isEmpty():
            cursor.setBlockFormat(spacer())
        cursor.endEditBlock()
        done = change.committed - self._base
        if done > 0:
            del self._starts[:done]
            # One block before the uncommitted ones remains: the next gap depends on it.
            del self._before[: len(self._before) - len(self._starts) - 1]
            self._base = change.committed
        self._part_last()

    def _end(self) -> int:
        return self.characterCount() - 1

    def _last_block(self) -> Block | None:
        return self._before[-1] if self._before else None

    def _grow(self, change: Change) -> int:
        """Turn the first changed block into its successor where it only differs at its end, which spares
        the layout and keeps a selection. How many blocks are done by that: 1 or 0."""
        at = change.keep - self._base
        if not change.blocks or at >= len(self._starts):
            return 0
        new, start = change.blocks[0], self._starts[at]
        old = self._before[len(self._before) - len(self._starts) + at]
        if new.kind in (Kind.TABLE, Kind.RULE) or new._replace(spans=(), closed=True) != old._replace(
            spans=(), closed=True
        ):
            return 0
        length, rest = _after_common(old.spans, new.spans)
        if length == 0:
            return 0
        has_spacer = new.kind is Kind.CODE and change.keep == 0
        begins_paragraph = not new.joins and (has_spacer or not start.free)
        self._drop_from(change.keep, start.position + begins_paragraph + length)
        self._starts.append(start)
        self._free, self._table = False, None
        self._continue(new._replace(spans=rest))
        self._before.append(new)
        if new.kind is Kind.CODE and new.closed and change.keep < change.committed:
            self.closed_code.append(self._end())
        return 1

    def _drop_from(self, index: int, keep_until: int | None = None) -> None:
        at = index - self._base
        cursor = self._cursor
        if at < len(self._starts):
            start = self._starts[at]
            taken = self._before[len(self._before) - (len(self._starts) - at) :]
            del self._before[len(self._before) - len(taken) :]
            del self._starts[at:]
            self._free, self._table = start.free, start.table
            position = start.position if keep_until is None else keep_until
            if taken[0].kind is Kind.TABLE and taken[0].joins and self._table is not None:
                position = self._table.lastCursorPosition().position() + 1
                extra = self._table.rows() - start.rows
                if extra > 0:
                    self._table.removeRows(start.rows, extra)
                    position = self._table.lastCursorPosition().position() + 1
            cursor.setPosition(position)
            cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
        cursor.movePosition(QTextCursor.MoveOperation.End)

    def _insert(self, block: Block) -> None:
        if block.kind is Kind.TABLE:
            self._insert_rows(block)
            return
        self._table = None
        if not block.joins or self._free:
            self._begin(block)
        self._continue(block)

    def _begin(self, block: Block) -> None:
        before = self._last_block()
        made = self.formats.block(block, before)
        if before is None and block.kind is Kind.CODE:
            # Qt drops the first paragraph's top margin, in which the card's header would be.
            self._cursor.setBlockFormat(spacer())
            self._free = False
        plain = self.formats.char(Span(""), block)
        if self._free:
            self._cursor.setBlockFormat(made)
            self._cursor.setBlockCharFormat(plain)
            self._free = False
        else:
            self._cursor.insertBlock(made, plain)

    def _continue(self, block: Block) -> None:
        cursor = self._cursor
        if block.kind is Kind.RULE:
            # Qt gives an empty paragraph after a table no room of its own.
            cursor.insertText(_NO_BREAK_SPACE)
        if block.kind not in (Kind.CODE, Kind.PLAIN):
            for span in block.spans:
                text = span.text.replace("\n", _LINE_BREAK)
                cursor.insertText(text, self.formats.char(span, block))
            return
        for span in block.spans:
            made = self.formats.char(span, block)
            first, line_break, rest = span.text.partition("\n")
            if first:
                cursor.insertText(first, made)
            if line_break:
                cursor.insertBlock(following(cursor.blockFormat()), made)
                cursor.insertText(rest, made)

    # Tables

    def _insert_rows(self, block: Block) -> None:
        columns = min(max((len(row) for row in block.rows), default=0), _TABLE_COLUMNS)
        if not columns:
            return
        rows = list(block.rows)
        header = not block.joins
        if header:
            self._table = None
        while rows:
            table = self._table
            if table is None or table.rows() >= _TABLE_ROWS:
                first, taken = 0, rows[:_TABLE_ROWS]
                table = self._new_table(block, columns, len(taken))
            else:
                first = table.rows()
                taken = rows[: _TABLE_ROWS - first]
                table.appendRows(len(taken))
            del rows[: len(taken)]
            for at, row in enumerate(taken):
                bold = header and at == 0 and first == 0
                for column, spans in enumerate(row[: table.columns()]):
                    align = block.aligns[column] if column < len(block.aligns) else ""
                    self._fill(table.cellAt(first + at, column).firstCursorPosition(), spans, align, bold)
            header = False
            self._table = table
            self._free = True
            self._cursor.movePosition(QTextCursor.MoveOperation.End)

    def _new_table(self, block: Block, columns: int, rows: int) -> QTextTable:
        before = self._last_block()
        made = QTextTableFormat()
        made.setBorder(1)
        made.setBorderCollapse(True)
        made.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        made.setBorderBrush(QBrush(QColor(theme.current().line)))
        made.setCellPadding(theme.S1 + 1)
        made.setCellSpacing(0)
        made.setTopMargin(0 if self._table is not None else gap(block, before))
        made.setBottomMargin(TABLE_PAD)  # a paragraph's own top margin counts for nothing after a table
        made.setLeftMargin(block.depth * INDENT + block.quote * theme.S4)
        if not block.joins:
            made.setHeaderRowCount(1)
        if self._table is not None:
            # Both parts of a long table get the same columns.
            made.setColumnWidthConstraints(_shares(self._table))
            made.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
            above = self._table.format()
            above.setColumnWidthConstraints(made.columnWidthConstraints())
            above.setWidth(made.width())
            above.setBottomMargin(0)
            self._table.setFormat(above)
        if self._free and before is None:
            self._cursor.setBlockFormat(spacer())
        return self._cursor.insertTable(rows, columns, made)

    def _fill(self, cell: QTextCursor, spans: tuple[Span, ...], align: str, bold: bool) -> None:
        made = QTextBlockFormat()
        made.setAlignment(_ALIGNMENTS.get(align, Qt.AlignmentFlag.AlignLeft))
        set_line_height(made, self.formats.line_height(self.defaultFont()))
        made.setProperty(Prop.CELL, True)
        cell.setBlockFormat(made)
        for span in spans:
            shown = span._replace(style=span.style | Style.BOLD) if bold else span
            cell.insertText(shown.text.replace("\n", _LINE_BREAK), self.formats.char(shown, _CELL))

    # Seams

    def _part_last(self) -> None:
        """Part the last paragraph while it is long, in what is committed of it."""
        while True:
            block = self.lastBlock()
            if block.length() <= 2 * SEAM_LENGTH:
                return
            limit = self._starts[0].position if self._starts else self._end()
            if not self._part(block, limit - block.position()):
                return

    def _part(self, block: QTextBlock, limit: int) -> bool:
        """Begin a new paragraph at a visual line of `block`, at most `limit` characters into it."""
        self.documentLayout().blockBoundingRect(block)  # lays it out
        layout = block.layout()
        if layout.lineCount() < 3:
            return False
        target = min(limit, SEAM_LENGTH)
        line = layout.lineForTextPosition(target)
        start = line.textStart() if line.isValid() else 0
        if start < SEAM_LENGTH // 4:
            return False
        cursor = QTextCursor(self)
        cursor.setPosition(block.position() + start)
        made = following(block.blockFormat())
        made.setProperty(Prop.SEAM, 1)
        cursor.beginEditBlock()
        if self.characterAt(block.position() + start - 1) == _LINE_BREAK:
            cursor.deletePreviousChar()
            made.setProperty(Prop.SEAM, 2)
        else:
            self._starts = [one._replace(position=one.position + 1) for one in self._starts]
        cursor.insertBlock(made)
        cursor.endEditBlock()
        self._seams += 1
        return True

    def move_seams(self) -> Iterator[None]:
        """Put the seams where lines begin at the present width, step by step.

        What is committed stays at its position between two steps, unlike what Qt knows of paragraphs.
        """
        position = 0
        while True:
            block = self.findBlock(position)
            while block.isValid() and not block.blockFormat().hasProperty(Prop.SEAM):
                block = block.next()
            if not block.isValid():
                return
            joined = self._close_seam(block)
            limit = self._starts[0].position if self._starts else self._end()
            if joined.length() > SEAM_LENGTH and self._part(joined, limit - joined.position()):
                joined = joined.next()
            position = joined.position() + joined.length()
            if position > self._end():
                return
            yield

    def _close_seam(self, block: QTextBlock) -> QTextBlock:
        """Join a paragraph to the one before; the result."""
        kind = block.blockFormat().property(Prop.SEAM)
        made = block.previous().blockFormat()
        cursor = QTextCursor(block)
        cursor.beginEditBlock()
        cursor.movePosition(QTextCursor.MoveOperation.PreviousCharacter, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        if kind == 2:
            cursor.insertText(_LINE_BREAK)
        else:
            self._starts = [one._replace(position=one.position - 1) for one in self._starts]
        cursor.setBlockFormat(made)
        cursor.endEditBlock()
        self._seams -= 1
        return cursor.block()

    # Reading

    def text_between(self, start: int, end: int) -> str:
        """The text of a selection: seams closed, list markers kept, rows of tables parted by tabs."""
        parts: list[str] = []
        block = self.findBlock(start)
        cell_of: tuple[int, int] | None = None
        while block.isValid() and block.position() < end:
            made = block.blockFormat()
            text = "---" if made.hasProperty(Prop.RULE) else self._text_in(block, start, end)
            cell = self._cell(block)
            if block.position() <= start:
                join = ""
            elif made.hasProperty(Prop.SEAM):
                join = "\n" if made.property(Prop.SEAM) == 2 else ""
            else:
                join = "\t" if cell is not None and cell_of is not None and cell[0] == cell_of[0] else "\n"
            if block.position() >= start and (marker := made.property(Prop.MARKER)):
                text = f"{marker} {text}"
            if not made.hasProperty(Prop.SPACER):
                parts += (join, text)
            cell_of = cell
            block = block.next()
        return "".join(parts).replace(_LINE_BREAK, "\n")

    def _text_in(self, block: QTextBlock, start: int, end: int) -> str:
        """The part of a paragraph between two positions, which count UTF-16 units."""
        last = block.position() + block.length() - 1
        if start <= block.position() and end >= last:
            return block.text()
        cursor = QTextCursor(self)
        cursor.setPosition(max(start, block.position()))
        cursor.setPosition(min(end, last), QTextCursor.MoveMode.KeepAnchor)
        return cursor.selectedText()

    def _cell(self, block: QTextBlock) -> tuple[int, int] | None:
        table = QTextCursor(block).currentTable()
        return None if table is None else (table.cellAt(block.position()).row(), table.firstPosition())

    def code_lines(self, position: int) -> tuple[QTextBlock, QTextBlock]:
        """The first and the last paragraph of the code around `position`."""
        first = last = self.findBlock(position)
        while first.blockFormat().property(Prop.CODE) == CodeLine.OTHER and first.previous().isValid():
            first = first.previous()
        while last.next().isValid() and last.next().blockFormat().property(Prop.CODE) == CodeLine.OTHER:
            last = last.next()
        return first, last

    def code_text(self, position: int) -> str:
        """The code around `position`."""
        first, last = self.code_lines(position)
        return self.text_between(first.position(), last.position() + last.length() - 1)

    def code_starts(self) -> list[int]:
        """Where code begins, for every fence."""
        return [block.position() for block in self._blocks() if _is_first(block)]

    def has_seams(self) -> bool:
        return self._seams > 0

    def _blocks(self) -> Iterator[QTextBlock]:
        block = self.begin()
        while block.isValid():
            yield block
            block = block.next()

    def end_pad(self) -> int:
        """Pixels that the last block needs beyond the document's height."""
        if self._free and self._table is not None:
            return -TABLE_PAD
        return CODE_PAD if self.lastBlock().blockFormat().property(Prop.CODE) else 0

    def recolour(self) -> None:
        """Take the theme's present colours; code is coloured by its highlighter."""
        self.formats = Formats()
        cursor = QTextCursor(self)
        cursor.beginEditBlock()
        tables: set[int] = set()
        block = self.begin()
        while block.isValid():
            self._recolour_block(block, cursor)
            table = QTextCursor(block).currentTable()
            if table is not None and table.firstPosition() not in tables:
                tables.add(table.firstPosition())
                made = table.format()
                made.setBorderBrush(QBrush(QColor(theme.current().line)))
                table.setFormat(made)
            block = block.next()
        cursor.endEditBlock()

    def _recolour_block(self, block: QTextBlock, cursor: QTextCursor) -> None:
        at = block.begin()
        styled: list[tuple[int, int, int]] = []
        while not at.atEnd():
            fragment = at.fragment()
            style = fragment.charFormat().property(Prop.STYLE)
            if style:
                styled.append((fragment.position(), fragment.length(), style))
            at += 1
        for position, length, style in styled:
            cursor.setPosition(position)
            cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
            made = cursor.charFormat()
            self.formats.colour(made, style)
            cursor.setCharFormat(made)


def _shares(table: QTextTable) -> list[QTextLength]:
    """Widths of a table's columns by their longest text."""
    longest = [
        max(_cell_length(table, row, column) for row in range(table.rows()))
        for column in range(table.columns())
    ]
    weights = [min(40, max(4, one)) for one in longest]
    kind = QTextLength.Type.PercentageLength
    return [QTextLength(kind, 100 * weight / sum(weights)) for weight in weights]


def _cell_length(table: QTextTable, row: int, column: int) -> int:
    cell = table.cellAt(row, column)
    return cell.lastPosition() - cell.firstPosition()


def _after_common(old: tuple[Span, ...], new: tuple[Span, ...]) -> tuple[int, tuple[Span, ...]]:
    """How many UTF-16 units two texts have in common at their beginning, and what is new after them."""
    length = 0
    for at, span in enumerate(new):
        if at < len(old) and old[at] == span:
            length += _units(span.text)
            continue
        if at < len(old) and old[at][1:] == span[1:]:
            same = _common(old[at].text, span.text)
            rest = span._replace(text=span.text[same:])
            return length + _units(span.text[:same]), (rest, *new[at + 1 :])
        return length, new[at:]
    return length, ()


def _common(old: str, new: str) -> int:
    if new.startswith(old):
        return len(old)
    return next((at for at, (one, two) in enumerate(zip(old, new, strict=False)) if one != two), len(new))


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _is_first(block: QTextBlock) -> bool:
    return bool(block.blockFormat().property(Prop.CODE) == CodeLine.FIRST)
