"""What our painted lists have in common. UI thread only."""

from PySide6.QtCore import QAbstractItemModel, QEvent, QPoint, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView

from laya_desktop.ui.style import shows_focus

_NOWHERE = QPoint(-1, -1)


class PaintedList(QListView):
    """A list without a frame whose delegate paints everything. `pointer` is where the mouse is, outside of
    the list while it is elsewhere; the viewport is painted again when it moves."""

    def __init__(self, model: QAbstractItemModel) -> None:
        super().__init__()
        self.pointer = _NOWHERE
        self.setModel(model)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)

    def keyboard_focus(self) -> bool:
        """Whether the current row needs a focus ring."""
        return shows_focus(self)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point(event.position().toPoint())
        super().mouseMoveEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        self._point(_NOWHERE)
        super().leaveEvent(event)

    def _point(self, at: QPoint) -> None:
        self.pointer = at
        self.viewport().update()
