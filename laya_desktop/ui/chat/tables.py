"""Tables of a document, row by row. UI thread only.

Qt lays out a table as a whole whenever something in it changes, so a long one goes on in another table that
has the same columns.
"""

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QTextBlockFormat,
    QTextCursor,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
    QTextTableFormat,
)

from laya_desktop.ui import theme
from laya_desktop.ui.chat.blocks import Block, Kind
from laya_desktop.ui.chat.formats import (
    INDENT,
    QUOTE_INDENT,
    TABLE_PAD,
    Formats,
    Prop,
    set_line_height,
    spacer,
)
from laya_desktop.ui.chat.inline import Span, Style
from laya_desktop.ui.chat.reading import LINE_BREAK

_ROWS = 40
_COLUMNS = 32
_CELL = Block(Kind.PARAGRAPH)
_ALIGNMENTS = {"center": Qt.AlignmentFlag.AlignHCenter, "right": Qt.AlignmentFlag.AlignRight}


def add_rows(
    cursor: QTextCursor, formats: Formats, table: QTextTable | None, block: Block, top: int
) -> QTextTable | None:
    """Add the block's rows to `table`, or to a new one at `cursor`, `top` pixels below what is above.

    Returns the table that now ends the document; None if there is nothing in the block.
    """
    columns = min(max((len(row) for row in block.rows), default=0), _COLUMNS)
    rows = list(block.rows) if columns else []
    header = not block.joins
    while rows:
        if table is None or table.rows() >= _ROWS:
            first, taken = 0, rows[:_ROWS]
            cursor.movePosition(QTextCursor.MoveOperation.End)
            if table is not None:
                cursor.setBlockFormat(spacer())
            table = _new_table(cursor, table, block, (len(taken), columns), top)
        else:
            first = table.rows()
            taken = rows[: _ROWS - first]
            table.appendRows(len(taken))
        del rows[: len(taken)]
        for at, row in enumerate(taken, first):
            for column, spans in enumerate(row[: table.columns()]):
                align = block.aligns[column] if column < len(block.aligns) else ""
                cell = table.cellAt(at, column).firstCursorPosition()
                _fill(cell, formats, spans, align, bold=header and at == 0)
        header = False
    return table if columns else None


def _new_table(
    cursor: QTextCursor, above: QTextTable | None, block: Block, size: tuple[int, int], top: int
) -> QTextTable:
    made = QTextTableFormat()
    made.setBorder(1)
    made.setBorderCollapse(True)
    made.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    made.setBorderBrush(QBrush(QColor(theme.current().line)))
    made.setCellPadding(theme.S1 + 1)
    made.setCellSpacing(0)
    made.setTopMargin(0 if above is not None else top)
    made.setBottomMargin(TABLE_PAD)  # a paragraph's own top margin counts for nothing after a table
    made.setLeftMargin(block.depth * INDENT + block.quote * QUOTE_INDENT)
    if above is None:
        made.setHeaderRowCount(1)
    else:
        made.setColumnWidthConstraints(_shares(above))
        made.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
        its = above.format()
        its.setColumnWidthConstraints(made.columnWidthConstraints())
        its.setWidth(made.width())
        its.setBottomMargin(0)
        above.setFormat(its)
    return cursor.insertTable(*size, made)


def _fill(cell: QTextCursor, formats: Formats, spans: tuple[Span, ...], align: str, *, bold: bool) -> None:
    made = QTextBlockFormat()
    made.setAlignment(_ALIGNMENTS.get(align, Qt.AlignmentFlag.AlignLeft))
    set_line_height(made, formats.line_height(theme.font()))
    made.setProperty(Prop.CELL, True)
    cell.setBlockFormat(made)
    for span in spans:
        shown = span._replace(style=span.style | Style.BOLD) if bold else span
        cell.insertText(shown.text.replace("\n", LINE_BREAK), formats.char(shown, _CELL))


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
