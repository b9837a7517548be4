"""A virtual list of cards that hold lines of text and chips; painted, so that hundreds cost nothing.

UI thread only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from laya_desktop.ui import theme
from laya_desktop.ui.painted_list import PaintedList
from laya_desktop.ui.style import focus_ring, rounded
from laya_desktop.ui.widgets import ChipTone, chip_width, paint_chip

_PAD = theme.S3
_SIDE = theme.S4


@dataclass(frozen=True)
class CardText:
    """A card: bold title with chips beside it, one at the right edge, wrapped muted text, chips below."""

    title: str
    chips: tuple[tuple[str, ChipTone], ...] = ()
    corner: tuple[str, ChipTone] | None = None
    text: str = ""
    below: tuple[tuple[str, ChipTone], ...] = ()
    tail: str = ""

    def spoken(self) -> str:
        chips = [text for text, _tone in (*self.chips, *self.below)]
        corner = [self.corner[0]] if self.corner else []
        return ", ".join(part for part in (self.title, *corner, *chips, self.text, self.tail) if part)


class CardsModel(QAbstractListModel):
    """Rows of any kind; `describe` turns one into its card when it is painted."""

    def __init__(self, describe: Callable[[Any], CardText]) -> None:
        super().__init__()
        self._describe = describe
        self._rows: Sequence[Any] = ()

    def set_rows(self, rows: Sequence[Any]) -> None:
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def rowCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        card = self._describe(self._rows[index.row()])
        if role == Qt.ItemDataRole.UserRole:
            return card
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return card.spoken()
        return None


class _Delegate(QStyledItemDelegate):
    def __init__(self, view: PaintedList, *, framed: bool) -> None:
        super().__init__(view)
        self._view = view
        self._framed = framed
        self._small = QFontMetrics(theme.font(theme.SMALL))

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        card: CardText = index.data(Qt.ItemDataRole.UserRole)
        width = self._view.viewport().width() - 2 * self._side()
        height = 2 * _PAD + 24
        if card.text:
            height += self._text_height(card.text, width) + theme.S1
        if card.below:
            height += 24 + theme.S2
        return QSize(120, height + (theme.S3 if self._framed else 0))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        card: CardText = index.data(Qt.ItemDataRole.UserRole)
        tokens = theme.current()
        area = option.rect.adjusted(0, 0, 0, -theme.S3 if self._framed else 0)
        painter.save()
        if self._framed:
            rounded(painter, area, theme.CARD_RADIUS, tokens.panel, tokens.line)
        elif index.row():
            painter.fillRect(
                area.x() + self._side(), area.y(), area.width() - 2 * self._side(), 1, tokens.color("line")
            )
        if index == self._view.currentIndex() and self._view.keyboard_focus():
            focus_ring(painter, area, theme.CARD_RADIUS)
        inner = area.adjusted(self._side(), _PAD, -self._side(), -_PAD)
        self._paint_head(painter, QRect(inner.x(), inner.y(), inner.width(), 24), card)
        y = inner.y() + 24
        painter.setFont(theme.font(theme.SMALL))
        if card.text:
            height = self._text_height(card.text, inner.width())
            painter.setPen(tokens.color("muted"))
            painter.drawText(
                QRect(inner.x(), y + theme.S1, inner.width(), height), Qt.TextFlag.TextWordWrap, card.text
            )
            y += height + theme.S1
        if card.below:
            self._paint_below(painter, QRect(inner.x(), y + theme.S2, inner.width(), 24), card)
        painter.restore()

    def _side(self) -> int:
        return _SIDE

    def _text_height(self, text: str, width: int) -> int:
        room = QRect(0, 0, max(60, width), 10_000)
        return self._small.boundingRect(room, Qt.TextFlag.TextWordWrap, text).height()

    def _paint_head(self, painter: QPainter, area: QRect, card: CardText) -> None:
        right = area.right() + 1
        if card.corner is not None:
            width = chip_width(card.corner[0], self._small)
            painter.setFont(theme.font(theme.SMALL))
            paint_chip(painter, QRect(right - width, area.y(), width, 24), *card.corner)
            right -= width + theme.S2
        chips = sum(chip_width(text, self._small) + theme.S2 for text, _tone in card.chips)
        painter.setFont(theme.font(bold=True))
        painter.setPen(theme.current().color("text"))
        metrics = painter.fontMetrics()
        room = max(60, right - area.x() - chips)
        title = metrics.elidedText(card.title, Qt.TextElideMode.ElideRight, room)
        painter.drawText(QRect(area.x(), area.y(), room, 24), Qt.AlignmentFlag.AlignVCenter, title)
        self._paint_chips(
            painter, area.x() + metrics.horizontalAdvance(title) + theme.S2, area.y(), right, card.chips
        )

    def _paint_below(self, painter: QPainter, area: QRect, card: CardText) -> None:
        x = self._paint_chips(painter, area.x(), area.y(), area.right() + 1, card.below)
        if card.tail and x < area.right() - 20:
            painter.setPen(theme.current().color("muted"))
            room = QRect(x, area.y(), area.right() + 1 - x, 24)
            text = self._small.elidedText(card.tail, Qt.TextElideMode.ElideRight, room.width())
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_chips(
        self, painter: QPainter, x: int, y: int, right: int, chips: tuple[tuple[str, ChipTone], ...]
    ) -> int:
        painter.setFont(theme.font(theme.SMALL))
        for text, tone in chips:
            width = min(chip_width(text, self._small), right - x)
            if width < 32:
                break
            paint_chip(painter, QRect(x, y, width, 24), text, tone)
            x += width + theme.S2
        return x


class CardsView(PaintedList):
    """Shows a `CardsModel`; `framed` cards stand apart, others are lines within one panel."""

    def __init__(self, model: CardsModel, *, framed: bool = True) -> None:
        super().__init__(model)
        self.setItemDelegate(_Delegate(self, framed=framed))
        self.setResizeMode(PaintedList.ResizeMode.Adjust)
        self.setSelectionMode(PaintedList.SelectionMode.NoSelection)
        if framed:
            self.viewport().setBackgroundRole(self.backgroundRole())
