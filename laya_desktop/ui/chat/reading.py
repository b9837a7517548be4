"""What a document of blocks says and how it takes other colours. UI thread only."""

from collections.abc import Iterator

from PySide6.QtCore import QObject
from PySide6.QtGui import QBrush, QColor, QTextBlock, QTextCursor, QTextDocument

from laya_desktop.ui import theme
from laya_desktop.ui.chat.formats import CodeLine, Formats, Prop

LINE_BREAK = "\u2028"
"""A line break inside a paragraph."""


class ReadableDocument(QTextDocument):
    """A document whose paragraphs carry our properties."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.formats = Formats()

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
        return "".join(parts).replace(LINE_BREAK, "\n")

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

    def _blocks(self) -> Iterator[QTextBlock]:
        block = self.begin()
        while block.isValid():
            yield block
            block = block.next()

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


def _is_first(block: QTextBlock) -> bool:
    return bool(block.blockFormat().property(Prop.CODE) == CodeLine.FIRST)
