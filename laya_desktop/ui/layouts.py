"""Ways to arrange widgets: a scrolling column, a wrapping line, a centred child. UI thread only."""

from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLayout, QLayoutItem, QScrollArea, QVBoxLayout, QWidget

from laya_desktop.ui import theme


class ScrollPage(QScrollArea):
    """A column of cards that scrolls vertically and never horizontally.

    Cards keep their height and stay at the top, or in the middle if `centred`; with `fill` they share what
    is left of the page's height.
    """

    def __init__(self, max_width: int | None = None, *, centred: bool = False, fill: bool = False) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inner = QWidget()
        outer = QVBoxLayout(inner)
        outer.setContentsMargins(theme.S5, theme.S5, theme.S5, theme.S5)
        holder = QWidget()
        middle = QHBoxLayout()
        middle.addWidget(holder)
        if max_width is not None:
            holder.setMaximumWidth(max_width)
        if centred:
            outer.addStretch(1)
        outer.addLayout(middle)
        if not fill:
            outer.addStretch(1)
        self.column = QVBoxLayout(holder)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(theme.S3)
        self.setWidget(inner)


class Flow(QLayout):
    """Children from left to right, wrapped into lines."""

    def __init__(self, spacing: int = theme.S2) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self.setSpacing(spacing)
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._place(QRect(0, 0, width, 0), apply=False)

    def sizeHint(self) -> QSize:
        width = sum(item.sizeHint().width() + self.spacing() for item in self._items)
        height = max((item.sizeHint().height() for item in self._items), default=0)
        return QSize(width, height)

    def minimumSize(self) -> QSize:
        width = max((item.minimumSize().width() for item in self._items), default=0)
        height = max((item.minimumSize().height() for item in self._items), default=0)
        return QSize(width, height)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._place(rect, apply=True)

    def _place(self, rect: QRect, *, apply: bool) -> int:
        x, y, line = rect.x(), rect.y(), 0
        for item in self._items:
            size = item.sizeHint()
            width = min(size.width(), rect.width())
            if x > rect.x() and x + width > rect.right() + 1:
                x, y, line = rect.x(), y + line + self.spacing(), 0
            if apply:
                item.setGeometry(QRect(x, y, width, size.height()))
            x += width + self.spacing()
            line = max(line, size.height())
        return y + line - rect.y()


class Centred(QWidget):
    """Holds one child in the middle, at most `limit` wide; `right` pixels at the right edge do not count."""

    def __init__(self, child: QWidget, limit: int, *, margin: int = theme.S5, right: int = 0) -> None:
        super().__init__()
        self._child, self._limit, self._margin, self._right = child, limit, margin, right
        child.setParent(self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._arrange()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
            self._arrange()
        return super().event(event)

    def sizeHint(self) -> QSize:
        return QSize(min(self._limit, 400), self._height(self.width()))

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self._height(self.width()))

    def _height(self, width: int) -> int:
        inner = max(1, min(self._limit, width - self._right - 2 * self._margin))
        if self._child.hasHeightForWidth():
            return self._child.heightForWidth(inner)
        return self._child.sizeHint().height()

    def _arrange(self) -> None:
        room = self.width() - self._right
        width = max(1, min(self._limit, room - 2 * self._margin))
        self._child.setGeometry((room - width) // 2, 0, width, self.height())
