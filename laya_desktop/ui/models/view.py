"""The models as a virtual list of painted cards. UI thread only."""

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from laya_desktop.core.errors import ErrorInfo
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import ModelState
from laya_desktop.ui import engine_text, format, theme
from laya_desktop.ui.model_text import facts, state_text, state_token, state_tone
from laya_desktop.ui.painted_list import PaintedList
from laya_desktop.ui.style import focus_ring, rounded
from laya_desktop.ui.widgets import chip_width, paint_bar, paint_chip

_HEIGHT = 76
_GAP = theme.S3
_STATUS = Qt.ItemDataRole.UserRole
_ERROR = Qt.ItemDataRole.UserRole + 1


class ModelsModel(QAbstractListModel):
    """One row per model; a state change repaints only its row."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[ModelStatus] = []
        self._errors: dict[str, ErrorInfo] = {}

    def set_models(self, models: tuple[ModelStatus, ...]) -> None:
        if [row.name for row in self._rows] != [model.name for model in models]:
            self.beginResetModel()
            self._rows = list(models)
            self.endResetModel()
            return
        for number, model in enumerate(models):
            if model != self._rows[number]:
                self._rows[number] = model
                self._changed(number)

    def set_error(self, name: str, error: ErrorInfo | None) -> None:
        """Show why the last request for this model failed; None takes it away."""
        if error is None:
            self._errors.pop(name, None)
        else:
            self._errors[name] = error
        for number, row in enumerate(self._rows):
            if row.name == name:
                self._changed(number)

    def rowCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        status = self._rows[index.row()]
        error = status.error or self._errors.get(status.name)
        if role == _STATUS:
            return status
        if role == _ERROR:
            return error
        if role == Qt.ItemDataRole.DisplayRole:
            return status.name
        if role == Qt.ItemDataRole.AccessibleTextRole:
            parts = (
                status.name,
                state_text(status),
                facts(status),
                engine_text.error(error) if error else "",
            )
            return ", ".join(part for part in parts if part)
        if role == Qt.ItemDataRole.ToolTipRole:
            return status.path
        return None

    def _changed(self, number: int) -> None:
        index = self.index(number)
        self.dataChanged.emit(index, index)


@dataclass(frozen=True)
class _Parts:
    """Where the parts of a card lie; `memory` is empty where there is no room."""

    card: QRect
    text: QRect
    memory: QRect
    button: QRect

    @classmethod
    def of(cls, item: QRect) -> "_Parts":
        card = item.adjusted(0, 0, 0, -_GAP)
        button = QRect(card.right() - theme.S4 - 91, card.y() + (_HEIGHT - 34) // 2, 92, 34)
        wide = card.width() >= 720
        memory = QRect(button.x() - 180 - theme.S4, card.y() + 21, 180, 34) if wide else QRect()
        right = (memory if wide else button).x() - theme.S4
        text = QRect(card.x() + theme.S4, card.y() + 14, right - card.x() - theme.S4, card.height() - 28)
        return cls(card, text, memory, button)


class _CardDelegate(QStyledItemDelegate):
    def __init__(self, view: "ModelsView") -> None:
        super().__init__(view)
        self._view = view

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        error: ErrorInfo | None = index.data(_ERROR)
        height = _HEIGHT
        if error is not None:
            height += self._error_rect(self._view.viewport().width(), error).height() + theme.S1
        return QSize(200, height + _GAP)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        status: ModelStatus = index.data(_STATUS)
        error: ErrorInfo | None = index.data(_ERROR)
        tokens = theme.current()
        parts = _Parts.of(option.rect)
        painter.save()
        rounded(painter, parts.card, theme.CARD_RADIUS, tokens.panel, tokens.line)
        if index == self._view.currentIndex() and self._view.keyboard_focus():
            focus_ring(painter, parts.card, theme.CARD_RADIUS)
        self._paint_title(painter, parts.text, status)
        self._paint_facts(painter, parts, status)
        if not parts.memory.isNull():
            self._paint_memory(painter, parts.memory, status)
        label = self._view.action_label(status)
        hovered = parts.button.contains(self._view.pointer)
        self._paint_button(painter, parts.button, label, hovered, enabled=bool(label))
        if error is not None:
            painter.setFont(theme.font(theme.SMALL))
            painter.setPen(tokens.color("danger"))
            area = self._error_rect(option.rect.width(), error)
            area.translate(parts.text.x(), parts.card.y() + _HEIGHT - theme.S2)
            painter.drawText(area, Qt.TextFlag.TextWordWrap, engine_text.error(error))
        painter.restore()

    def _error_rect(self, width: int, error: ErrorInfo) -> QRect:
        from PySide6.QtGui import QFontMetrics

        metrics = QFontMetrics(theme.font(theme.SMALL))
        room = QRect(0, 0, max(80, width - 2 * theme.S4), 10_000)
        return metrics.boundingRect(room, Qt.TextFlag.TextWordWrap, engine_text.error(error))

    def _paint_title(self, painter: QPainter, area: QRect, status: ModelStatus) -> None:
        tokens = theme.current()
        rounded(painter, QRect(area.x(), area.y() + 8, 8, 8), 4, tokens.color(state_token(status)))
        painter.setFont(theme.font(theme.SMALL))
        state = state_text(status)
        chip = min(chip_width(state, painter.fontMetrics()), area.width() // 2)
        painter.setFont(theme.font(bold=True))
        painter.setPen(tokens.color("text"))
        metrics = painter.fontMetrics()
        left = area.x() + theme.S4
        name = metrics.elidedText(
            status.name, Qt.TextElideMode.ElideMiddle, area.right() - left - chip - theme.S2
        )
        painter.drawText(QRect(left, area.y(), area.width(), 24), Qt.AlignmentFlag.AlignVCenter, name)
        painter.setFont(theme.font(theme.SMALL))
        at = left + metrics.horizontalAdvance(name) + theme.S2
        paint_chip(painter, QRect(at, area.y(), chip, 24), state, state_tone(status))

    def _paint_facts(self, painter: QPainter, parts: _Parts, status: ModelStatus) -> None:
        text = facts(status)
        if parts.memory.isNull() and status.memory_bytes:
            text = f"{format.size(status.memory_bytes)} · {text}"
        painter.setFont(theme.font(theme.SMALL))
        painter.setPen(theme.current().color("muted"))
        area = QRect(parts.text.x(), parts.text.y() + 27, parts.text.width(), 20)
        shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, shown)

    def _paint_memory(self, painter: QPainter, area: QRect, status: ModelStatus) -> None:
        painter.setFont(theme.font(theme.SMALL))
        painter.setPen(theme.current().color("text"))
        loading = status.state == ModelState.LOADING
        if loading:
            text, share = self.tr("reading weights…"), status.progress or 0.0
        elif status.memory_bytes:
            text = self.tr("{0} now").format(format.size(status.memory_bytes))
            share = status.memory_bytes / self._view.memory_limit if self._view.memory_limit else 0.0
        else:
            return
        painter.drawText(QRect(area.x(), area.y(), area.width(), 18), Qt.AlignmentFlag.AlignVCenter, text)
        paint_bar(painter, QRect(area.x(), area.y() + 24, area.width(), 6), share)

    def _paint_button(
        self, painter: QPainter, area: QRect, label: str, hovered: bool, *, enabled: bool
    ) -> None:
        if not enabled:
            return
        tokens = theme.current()
        shade = 0.12 if hovered and self._view.pressed else 0.06 if hovered else 0
        rounded(
            painter, area, theme.RADIUS, theme.mix(tokens.panel, tokens.text, shade), tokens.control_border
        )
        painter.setFont(theme.font(13))
        painter.setPen(tokens.color("text"))
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter, label)


class ModelsView(PaintedList):
    """Emits `load_wanted` and `unload_wanted`: by mouse, or by Enter on the current card."""

    load_wanted = Signal(str)
    unload_wanted = Signal(str)

    def __init__(self, model: ModelsModel) -> None:
        super().__init__(model)
        self.pressed = False
        self.memory_limit = 0
        self.setItemDelegate(_CardDelegate(self))
        self.setSelectionMode(PaintedList.SelectionMode.NoSelection)
        self.setResizeMode(PaintedList.ResizeMode.Adjust)
        self.viewport().setBackgroundRole(self.backgroundRole())
        self.setViewportMargins(theme.S5, theme.S5, theme.S5, 0)

    def action_label(self, status: ModelStatus) -> str:
        """What the button of this card does; empty where there is nothing to do."""
        match status.state:
            case ModelState.COLD:
                return self.tr("Retry") if status.error is not None else self.tr("Warm")
            case ModelState.FAILED:
                return self.tr("Retry")
            case ModelState.LOADING:
                return self.tr("Cancel")
            case ModelState.WARM | ModelState.BUSY:
                return self.tr("Unload")
        return ""

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        over = self._button_at(self.pointer) is not None
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if over else Qt.CursorShape.ArrowCursor)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pressed = self._button_at(event.position().toPoint()) is not None
        self.viewport().update()
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        index = self._button_at(event.position().toPoint())
        if self.pressed and index is not None and event.button() == Qt.MouseButton.LeftButton:
            self._act(index)
        self.pressed = False
        self.viewport().update()
        super().mouseReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
        if event.key() in keys and self.currentIndex().isValid():
            self._act(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def _button_at(self, position: QPoint) -> QModelIndex | None:
        index = self.indexAt(position)
        if index.isValid() and _Parts.of(self.visualRect(index)).button.contains(position):
            return index
        return None

    def _act(self, index: QModelIndex) -> None:
        status: ModelStatus = index.data(_STATUS)
        if status.state in (ModelState.COLD, ModelState.FAILED):
            self.load_wanted.emit(status.name)
        elif status.state != ModelState.UNLOADING:
            self.unload_wanted.emit(status.name)
