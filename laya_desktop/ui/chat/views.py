"""The few widgets that show a transcript's many messages. UI thread only."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, QPoint, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractScrollArea

from laya_desktop.ui.chat.message_view import MessageData, MessageView

_SPARE: Final = 16
_DRAG_MS: Final = 33


def single_shot(parent: QObject, interval_ms: int, slot: Callable[[], None]) -> QTimer:
    """A precise timer that fires once for each start."""
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.setInterval(interval_ms)
    timer.setTimerType(Qt.TimerType.PreciseTimer)
    timer.timeout.connect(slot)
    return timer


class Views:
    """`bound` has the widgets of the messages around the view, by message; others are spare. A spare one
    still shows its last message, in case that comes back first."""

    def __init__(self, make: Callable[[], MessageView]) -> None:
        self._make = make
        self.bound: dict[str, MessageView] = {}
        self._spare: OrderedDict[str, MessageView] = OrderedDict()

    def bind(self, data: MessageData) -> MessageView:
        """A widget for a message that has none."""
        view = self._spare.pop(data.id, None)
        if view is None:
            if len(self._spare) >= _SPARE:
                _, view = self._spare.popitem(last=False)
            else:
                view = self._make()
            view.show_message(data)
        self.bound[data.id] = view
        return view

    def release(self, message_id: str) -> None:
        """The message is out of view."""
        view = self.bound.pop(message_id, None)
        if view is None:
            return
        view.hide()
        self._spare[message_id] = view
        if len(self._spare) > 2 * _SPARE:
            _, oldest = self._spare.popitem(last=False)
            oldest.deleteLater()

    def forget(self, message_id: str) -> None:
        """A spare widget's content is out of date; it is the first to be reused."""
        view = self._spare.pop(message_id, None)
        if view is not None:
            key = f"\0{id(view)}"
            self._spare[key] = view
            self._spare.move_to_end(key, last=False)

    def forget_all(self) -> None:
        """So is that of every spare widget."""
        for message_id in list(self._spare):
            self.forget(message_id)

    def clear(self) -> None:
        """Show no message."""
        for message_id in list(self.bound):
            self.release(message_id)
        self.forget_all()


class EdgeScroll(QObject):
    """Scrolls an area while a selection is dragged beyond an edge, faster the farther it is."""

    def __init__(self, area: QAbstractScrollArea) -> None:
        super().__init__(area)
        self._area, self._at = area, QPoint()
        self._timer = single_shot(self, _DRAG_MS, self._scroll)

    def drag(self, at: QPoint) -> None:
        """The mouse is at this place of the screen."""
        self._at = self._area.viewport().mapFromGlobal(at)
        if not self._area.viewport().rect().contains(self._at) and not self._timer.isActive():
            self._timer.start()

    def _scroll(self) -> None:
        y = self._at.y()
        beyond = y if y < 0 else max(0, y - self._area.viewport().height())
        if beyond and QGuiApplication.mouseButtons() & Qt.MouseButton.LeftButton:
            bar = self._area.verticalScrollBar()
            bar.setValue(bar.value() + max(-100, min(100, beyond // 2)))
            self._timer.start()
