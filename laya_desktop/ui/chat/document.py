"""Blocks into a `QTextDocument`, without ever laying out again what is finished. UI thread only.

Qt's layout of a document is incremental by paragraph, but linear in a paragraph's length. So code has one
paragraph per line, and a long paragraph is parted at the beginning of one of its visual lines, which nobody
sees (a *seam*); copying puts it together again.
"""

from collections.abc import Iterator
from typing import NamedTuple

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QTextBlock, QTextCursor, QTextOption, QTextTable

from laya_desktop.ui import theme
from laya_desktop.ui.chat.blocks import Block, Change, Kind
from laya_desktop.ui.chat.formats import CODE_PAD, TABLE_PAD, Prop, following, gap, spacer
from laya_desktop.ui.chat.inline import Span
from laya_desktop.ui.chat.reading import LINE_BREAK, ReadableDocument
from laya_desktop.ui.chat.tables import add_rows

LIMIT = 50_000
"""Characters of code above which it stays plain."""
SEAM_LENGTH = 500
"""Characters after which a paragraph is parted, once it has twice as many."""
_NO_BREAK_SPACE = "\xa0"


class _Start(NamedTuple):
    """What to go back to when a block is taken away: the document's end and state before it came."""

    position: int
    free: bool
    table: QTextTable | None
    rows: int  # of `table`


class AnswerDocument(ReadableDocument):
    """The text of one message. `apply` takes what a `MarkdownStream` reports."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setUndoRedoEnabled(False)
        self.setDocumentMargin(0)
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
        self._code = QTextCursor(self)  # in the first line of the latest code
        self._code.setKeepPositionOnInsert(True)
        self._seams = 0
        self.closed_code: list[int] = []
        """Where code begins whose fence closed since this list was last emptied; none that is too long."""

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
                self._close_code()
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

    def _close_code(self) -> None:
        start = self._code.block().position()
        if self._end() - start <= LIMIT:
            self.closed_code.append(start)

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
            self._close_code()
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
        if block.kind is Kind.CODE:
            self._code.setPosition(self._cursor.position())

    def _continue(self, block: Block) -> None:
        cursor = self._cursor
        if block.kind is Kind.RULE:
            # Qt gives an empty paragraph after a table no room of its own.
            cursor.insertText(_NO_BREAK_SPACE)
        if block.kind not in (Kind.CODE, Kind.PLAIN):
            for span in block.spans:
                text = span.text.replace("\n", LINE_BREAK)
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

    def _insert_rows(self, block: Block) -> None:
        if not block.joins:
            self._table = None
        top = gap(block, self._last_block())
        if self._free and self._last_block() is None:
            self._cursor.setBlockFormat(spacer())
        table = add_rows(self._cursor, self.formats, self._table, block, top)
        if table is not None:
            self._table = table
            self._free = True
            self._cursor.movePosition(QTextCursor.MoveOperation.End)

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
        if self.characterAt(block.position() + start - 1) == LINE_BREAK:
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
            cursor.insertText(LINE_BREAK)
        else:
            self._starts = [one._replace(position=one.position - 1) for one in self._starts]
        cursor.setBlockFormat(made)
        cursor.endEditBlock()
        self._seams -= 1
        return cursor.block()

    def has_seams(self) -> bool:
        return self._seams > 0

    def end_pad(self) -> int:
        """Pixels that the last block needs beyond the document's height."""
        if self._free and self._table is not None:
            return -TABLE_PAD
        return CODE_PAD if self.lastBlock().blockFormat().property(Prop.CODE) else 0


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
