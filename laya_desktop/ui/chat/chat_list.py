"""The conversations at the left: by date, loaded page by page, renamed in place, deleted with undo.

UI thread only.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QLocale,
    QModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import (
    QLineEdit,
    QMenu,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from laya_desktop.ui import icons, theme
from laya_desktop.ui.chat.undo_bar import UndoBar
from laya_desktop.ui.painted_list import PaintedList
from laya_desktop.ui.style import focus_ring, rounded
from laya_desktop.ui.widgets import Panel, Retranslating, Text, button

_ENTRY = Qt.ItemDataRole.UserRole


@dataclass(frozen=True)
class Entry:
    """A conversation in the list. `updated` is seconds since the epoch."""

    id: str
    title: str
    updated: float
    running: bool = False


class ChatListModel(QAbstractListModel):
    """Entries newest first, with a heading (a plain string) before each day or month."""

    more_wanted = Signal()
    renamed = Signal(str, str)

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, Entry] = {}
        self._rows: list[str | Entry] = []
        self._complete = True

    def set_entries(self, entries: Iterable[Entry], *, complete: bool) -> None:
        """Replace everything that is loaded."""
        self._entries = {entry.id: entry for entry in entries}
        self._complete = complete
        self.regroup()

    def put(self, entry: Entry) -> None:
        """Add or change one."""
        before = self._entries.get(entry.id)
        self._entries[entry.id] = entry
        if before is not None and before.updated == entry.updated:
            row = self.row_of(entry.id)
            self._rows[row] = entry
            self.dataChanged.emit(self.index(row), self.index(row))
        else:
            self.regroup()

    def remove(self, conversation: str) -> None:
        if self._entries.pop(conversation, None) is not None:
            self.regroup()

    def entry(self, conversation: str) -> Entry | None:
        return self._entries.get(conversation)

    def set_running(self, running: set[str]) -> None:
        """Mark the conversations that stream."""
        for entry in list(self._entries.values()):
            if entry.running != (entry.id in running):
                self.put(replace(entry, running=not entry.running))

    def row_of(self, conversation: str) -> int:
        for number, row in enumerate(self._rows):
            if isinstance(row, Entry) and row.id == conversation:
                return number
        return -1

    def regroup(self) -> None:
        """Build the rows anew: after a change of entries, of the language or of the day."""
        rows, before = self._grouped(), len(self._rows)
        if before and rows[:before] == self._rows:
            # A further page: inserting keeps the scroll position.
            if len(rows) > before:
                self.beginInsertRows(QModelIndex(), before, len(rows) - 1)
                self._rows = rows
                self.endInsertRows()
            return
        if len(rows) == before and {_key(row) for row in rows} == {_key(row) for row in self._rows}:
            self._reorder(rows)
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def _reorder(self, rows: list[str | Entry]) -> None:
        """The same rows in another order, or with other titles. A name that is being edited stays open."""
        self.layoutAboutToBeChanged.emit()
        held = self.persistentIndexList()
        keys = [_key(self._rows[index.row()]) for index in held]
        place = {_key(row): number for number, row in enumerate(rows)}
        self._rows = rows
        self.changePersistentIndexList(held, [self.index(place[key]) for key in keys])
        self.layoutChanged.emit()

    def rowCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self._rows)

    def canFetchMore(self, parent: QModelIndex) -> bool:
        return not self._complete

    def fetchMore(self, parent: QModelIndex) -> None:
        self._complete = True  # until the page has come
        self.more_wanted.emit()

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        if role == _ENTRY:
            return row
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return row if isinstance(row, str) else row.title
        if role == Qt.ItemDataRole.ToolTipRole and isinstance(row, Entry):
            return row.title
        return None

    def setData(self, index: QModelIndex, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        row, title = self._rows[index.row()], str(value).strip()
        if not isinstance(row, Entry) or not title or title == row.title:
            return False
        self.put(replace(row, title=title))
        self.renamed.emit(row.id, title)
        return True

    def flags(self, index: QModelIndex) -> Qt.ItemFlag:
        if not index.isValid() or isinstance(self._rows[index.row()], str):
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable

    def _grouped(self) -> list[str | Entry]:
        rows: list[str | Entry] = []
        today, heading = date.today(), ""
        for entry in sorted(self._entries.values(), key=lambda one: -one.updated):
            group = self._group(datetime.fromtimestamp(entry.updated).date(), today)
            if group != heading:
                rows.append(group)
                heading = group
            rows.append(entry)
        return rows

    def _group(self, day: date, today: date) -> str:
        if day >= today:
            return self.tr("Today")
        if day == today - timedelta(days=1):
            return self.tr("Yesterday")
        if day > today - timedelta(days=7):
            return self.tr("Last 7 days")
        month = QLocale().standaloneMonthName(day.month)
        return (
            month if day.year == today.year else self.tr("{month} {year}").format(month=month, year=day.year)
        )


def _key(row: str | Entry) -> tuple[bool, str]:
    """What tells a row from all others: the id of a chat, the text of a heading."""
    return (True, row.id) if isinstance(row, Entry) else (False, row)


class _EntryDelegate(QStyledItemDelegate):
    def __init__(self, view: "ChatListView") -> None:
        super().__init__(view)
        self._view = view

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        return QSize(100, 38)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        row = index.data(_ENTRY)
        painter.save()
        if isinstance(row, str):
            painter.setFont(theme.font(theme.SMALL))
            painter.setPen(theme.current().color("muted"))
            area = option.rect.adjusted(theme.S2, 0, 0, -theme.S1)
            painter.drawText(area, Qt.AlignmentFlag.AlignBottom, row)
        else:
            self._paint_entry(painter, option.rect, index, row)
        painter.restore()

    def _paint_entry(self, painter: QPainter, rect: QRect, index: QModelIndex, entry: Entry) -> None:
        tokens = theme.current()
        area = rect.adjusted(0, 1, 0, -1)
        chosen = entry.id == self._view.shown
        hovered = area.contains(self._view.pointer)
        if chosen:
            rounded(painter, area, theme.RADIUS, tokens.accent_tint)
        elif hovered:
            rounded(painter, area, theme.RADIUS, theme.mix(tokens.panel, tokens.text, 0.05))
        if index == self._view.currentIndex() and self._view.keyboard_focus():
            focus_ring(painter, area)
        text = area.adjusted(10, 0, -10, 0)
        if hovered:
            bin_area = self._view.bin_rect(rect)
            token = "danger" if bin_area.contains(self._view.pointer) else "muted"
            icons.paint(painter, "trash", getattr(tokens, token), QRectF(bin_area.adjusted(6, 6, -6, -6)))
            text.setRight(bin_area.left())
        elif entry.running:
            dot = QRect(area.right() - 18, area.center().y() - 3, 8, 8)
            rounded(painter, dot, 4, tokens.accent)
            text.setRight(dot.left() - theme.S1)
        painter.setFont(theme.font())
        painter.setPen(tokens.color("text"))
        shown = painter.fontMetrics().elidedText(entry.title, Qt.TextElideMode.ElideRight, text.width())
        painter.drawText(text, Qt.AlignmentFlag.AlignVCenter, shown)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: QModelIndex) -> QWidget:
        editor = QLineEdit(parent)
        editor.setFont(theme.font())
        return editor

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        editor.setGeometry(option.rect.adjusted(0, 1, 0, -1))


class ChatListView(PaintedList):
    """Emits `opened` for a click or Enter, `delete_wanted` from the bin, the Delete key or the menu."""

    opened = Signal(str)
    delete_wanted = Signal(str)

    def __init__(self, model: ChatListModel) -> None:
        super().__init__(model)
        self.shown: str | None = None
        self._second_click = False
        self.setItemDelegate(_EntryDelegate(self))
        # Headings are as high as entries, so that ten thousand rows are laid out at once.
        self.setUniformItemSizes(True)
        self.setEditTriggers(PaintedList.EditTrigger.EditKeyPressed | PaintedList.EditTrigger.DoubleClicked)
        self.clicked.connect(self._open)

    def show_as_open(self, conversation: str | None) -> None:
        """Mark the conversation that is shown."""
        self.shown = conversation
        model = self.model()
        assert isinstance(model, ChatListModel)
        row = model.row_of(conversation) if conversation else -1
        self.setCurrentIndex(model.index(row) if row >= 0 else QModelIndex())
        self.viewport().update()

    def bin_rect(self, item: QRect) -> QRect:
        return QRect(item.right() - 32, item.center().y() - 13, 28, 28)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        binned = self._binned(event)
        second, self._second_click = self._second_click, False
        if binned is None:
            super().mouseReleaseEvent(event)
        elif not second:
            self.delete_wanted.emit(binned.id)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        # The first click deleted a chat and the next one slid under the pointer: leave that one alone.
        self._second_click = self._binned(event) is not None
        if not self._second_click:
            super().mouseDoubleClickEvent(event)

    def _binned(self, event: QMouseEvent) -> Entry | None:
        """The chat whose bin the pointer is on."""
        index = self.indexAt(event.position().toPoint())
        entry = index.data(_ENTRY) if index.isValid() else None
        on_bin = self.bin_rect(self.visualRect(index)).contains(event.position().toPoint())
        return entry if isinstance(entry, Entry) and on_bin else None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self.state() is self.State.EditingState:
            return  # the field of a name passes Enter on to us: it must not open the chat as well
        entry = self.currentIndex().data(_ENTRY)
        if event.key() == Qt.Key.Key_Delete and isinstance(entry, Entry):
            self.delete_wanted.emit(entry.id)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._open(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        index = self.indexAt(event.pos())
        entry = index.data(_ENTRY)
        if not isinstance(entry, Entry):
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(self.tr("Rename"), lambda: self.edit(index))
        menu.addAction(self.tr("Delete"), lambda: self.delete_wanted.emit(entry.id))
        menu.popup(event.globalPos())

    def _open(self, index: QModelIndex) -> None:
        entry = index.data(_ENTRY)
        if isinstance(entry, Entry):
            self.opened.emit(entry.id)


class ChatListPanel(Retranslating, Panel):
    """New chat, the list, and the undo bar."""

    WIDTH = 248
    new_wanted = Signal()

    def __init__(self) -> None:
        super().__init__("panel", ("right",))
        self.model = ChatListModel()
        self.view = ChatListView(self.model)
        self.undo_bar = UndoBar()
        self._new = button()
        self._empty = Text(tone="muted", size=theme.SMALL, wrap=True)
        self._new.clicked.connect(self.new_wanted)
        column = QVBoxLayout(self)
        column.setContentsMargins(theme.S3, 10, theme.S3 + 1, theme.S3)
        column.setSpacing(theme.S1)
        column.addWidget(self._new)
        column.addWidget(self._empty)
        column.addWidget(self.view, 1)
        column.addWidget(self.undo_bar)
        self.setFixedWidth(self.WIDTH)
        self.model.modelReset.connect(self._refresh)
        theme.notifier().changed.connect(self._recolour)
        self.retranslate()
        self._recolour()
        self._refresh()

    def retranslate(self) -> None:
        self._new.setText(self.tr("New chat"))
        self._empty.setText(self.tr("Your chats will be listed here."))
        self.view.setAccessibleName(self.tr("Chats"))
        self.model.regroup()

    def _refresh(self) -> None:
        empty = self.model.rowCount() == 0
        self._empty.setVisible(empty)
        self.view.setVisible(True)

    def _recolour(self) -> None:
        self._new.setIcon(icons.icon("plus"))
