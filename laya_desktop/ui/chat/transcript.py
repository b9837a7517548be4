"""The column of messages: thousands of them, a few widgets. UI thread only.

Every message has a height, estimated until it has been on screen at this width. What is visible gets a
recycled `MessageView`; the rest costs one small object. The place of the reader is an *anchor*, a message
and where its top is, or the end: corrections of heights elsewhere never move what is being read.
"""

from collections.abc import Iterable
from time import perf_counter
from typing import Any, Final

from PySide6.QtCore import QPoint, QRect, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPalette, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QPushButton, QWidget

from laya_desktop.ui import theme
from laya_desktop.ui.chat.column import Column, Item
from laya_desktop.ui.chat.link_popover import LinkPopover
from laya_desktop.ui.chat.message_view import MessageData, MessageView
from laya_desktop.ui.chat.views import EdgeScroll, Views, single_shot
from laya_desktop.ui.widgets import Retranslating, button

__all__ = ["MessageData", "Transcript"]

COLUMN: Final = 760
"""Widest column, in pixels."""
_FLUSH_MS: Final = 33
_FLUSH_BUDGET_S: Final = 0.008
_BIND_BUDGET_S: Final = 0.012
_WORK_MS: Final = 8
_SETTLED_MS: Final = 150
_WORK_BUDGET_S: Final = 0.004
_NEAR_END: Final = 4


class Transcript(Retranslating, QAbstractScrollArea):
    """Shows a conversation; follows its end until the reader scrolls up."""

    link_activated = Signal(str)
    """An address the reader has confirmed to open."""
    retry_requested = Signal(str)
    why_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Always on, so that its coming never changes the width; the style hides one that has no use.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setBackgroundRole(QPalette.ColorRole.Window)
        self.viewport().setAutoFillBackground(True)
        self.verticalScrollBar().setSingleStep(theme.S5)
        self._column = Column()
        self._views = Views(self._new_view)
        self._edge_scroll = EdgeScroll(self)
        self._follow = True
        self._anchor = (0, 0)  # message, pixels of its top below the viewport's
        self._placing = False
        self._value = 0
        self._buffers: dict[str, list[str]] = {}
        self._flush_timer = single_shot(self, _FLUSH_MS, self.flush)
        self._work_timer = single_shot(self, _WORK_MS, self._work)
        self._jump = button()
        self._jump.setParent(self)
        self._jump.hide()
        self._jump.clicked.connect(self.scroll_to_end)
        self._popover = LinkPopover(self)
        self._popover.opened.connect(self.link_activated)
        theme.notifier().changed.connect(self._recolour)
        self.retranslate()

    def retranslate(self) -> None:
        self.setAccessibleName(self.tr("Conversation"))
        self._jump.setText(self.tr("↓ Latest"))
        self._jump.setAccessibleName(self.tr("Jump to the latest message"))
        self._place_jump()

    # Messages

    def set_messages(self, messages: Iterable[MessageData]) -> None:
        """Show another conversation, at its end."""
        self.clear()
        self._column.add(messages, self._column_width())
        self._arrange()

    def append(self, message: MessageData) -> None:
        """Add a message. The user's own brings the view to the end."""
        self._column.add((message,), self._column_width())
        if message.role == "user":
            self._follow = True
        self._arrange()

    def remove(self, message_id: str) -> None:
        """Take a message away."""
        if message_id not in self._column:
            return
        self._views.release(message_id)
        self._views.forget(message_id)
        self._buffers.pop(message_id, None)
        at = self._column.remove(message_id)
        if self._anchor[0] > at:
            self._anchor = (self._anchor[0] - 1, self._anchor[1])
        self._arrange()

    def clear(self) -> None:
        """Show nothing."""
        self._views.clear()
        self._column.clear()
        self._buffers.clear()
        self._follow, self._anchor = True, (0, 0)
        self._popover.hide()
        self._arrange()

    def stream_text(self, message_id: str, text: str) -> None:
        """Add text to a streaming message. Cheap: it is shown with the next flush, 30 times a second."""
        if message_id in self._column:
            self._buffers.setdefault(message_id, []).append(text)
            self._schedule()

    def update_message(self, message_id: str, **fields: Any) -> None:
        """Change fields of a message; shown with the next flush. A new `text` replaces the old one."""
        if message_id not in self._column:
            return
        item = self._column[message_id]
        self._take_buffer(message_id)
        text = fields.pop("text", item.data.text)
        streamed = item.data.state == "streaming"
        for name, value in fields.items():
            setattr(item.data, name, value)
        view = self._views.bound.get(message_id)
        resumed = not streamed and item.data.state == "streaming"
        if text != item.data.text or resumed:
            item.data.text = text
            if view is not None:
                view.show_message(item.data)
        elif view is not None:
            if streamed and item.data.state != "streaming":
                view.body.finish()
            view.refresh()
        if view is None:
            self._views.forget(message_id)
        item.changed()
        self._buffers.setdefault(message_id, [])
        self._schedule()

    def finish(self, message_id: str, **fields: Any) -> None:
        """The message is complete, unless `fields` names another state."""
        self.update_message(message_id, **{"state": "complete", **fields})

    def message(self, message_id: str) -> MessageData:
        """What is shown of a message. Raises KeyError."""
        return self._column[message_id].data

    def is_busy(self) -> bool:
        """Whether something waits to be shown: streamed text, a slice of a long one, colours of code."""
        return bool(self._buffers) or self._flush_timer.isActive() or self._next_task() is not None

    def jump_button(self) -> QPushButton:
        """What leads back to the end."""
        return self._jump

    def popover(self) -> LinkPopover:
        """What asks before a link opens."""
        return self._popover

    def flush(self) -> None:
        """Show what has been streamed since the last time."""
        begun = perf_counter()
        waiting = list(self._buffers)
        for message_id in waiting:
            self._take_buffer(message_id)
        self._buffers.clear()
        left = False
        for message_id in waiting:
            view = self._views.bound.get(message_id)
            if view is not None:
                left |= view.body.advance(_FLUSH_BUDGET_S)
                self._column[message_id].changed()
        self._arrange()
        took_ms = round((perf_counter() - begun) * 1000)
        # A machine that is too slow for 30 Hz gets fewer flushes, not a busier thread.
        self._flush_timer.setInterval(max(_FLUSH_MS, 3 * took_ms))
        if left:
            self._plan_work()

    def _schedule(self) -> None:
        if not self._flush_timer.isActive():
            self._flush_timer.start()

    def _take_buffer(self, message_id: str) -> None:
        pieces = self._buffers.get(message_id)
        if not pieces:
            return
        text = "".join(pieces)
        pieces.clear()
        item = self._column[message_id]
        had_text = bool(item.data.text)
        item.data.text += text
        view = self._views.bound.get(message_id)
        if view is None:
            self._views.forget(message_id)
            item.changed()
            return
        view.body.feed(text)
        if not had_text:
            view.refresh()

    # Views

    def _new_view(self) -> MessageView:
        view = MessageView(self.viewport())
        view.retry_requested.connect(self.retry_requested)
        view.why_requested.connect(self.why_requested)
        view.link_clicked.connect(self._ask_link)
        view.dragged_beyond.connect(self._drag)
        return view

    # Geometry

    def _column_width(self) -> int:
        return max(120, min(COLUMN, self.viewport().width() - 2 * theme.S5))

    def _arrange(self) -> None:
        """Measure and place what is visible. The reader's place stays where it is."""
        if self._placing or not self.isVisible():
            return
        self._placing = True
        width, page = self._column_width(), self.viewport().height()
        deadline = perf_counter() + _BIND_BUDGET_S
        for _ in range(12):
            self._column.sum_up()
            value = self._wanted_value(page)
            shown = [self._column.items[at] for at in self._column.between(value, value + page)]
            if not sum(self._measure(item, width, deadline) for item in shown):
                break
        self._place(value, width, page)
        self._placing = False
        self._show_jump()
        self._plan_work()

    def _wanted_value(self, page: int) -> int:
        if self._follow or not len(self._column):
            return self._column.maximum(page)
        return self._column.value_of(*self._anchor, page)

    def _measure(self, item: Item, width: int, deadline: float) -> bool:
        """Give a message its view and its true height. Whether that was another."""
        view = self._views.bound.get(item.data.id)
        if view is not None and item.width == width:
            return False
        if view is None:
            view = self._views.bind(item.data)
            view.body.advance(max(0.0, deadline - perf_counter()))
        return item.measured(width, view.arrange(width), final=view.body.is_loaded())

    def _place(self, value: int, width: int, page: int) -> None:
        moved = self._value - value
        self._value = value
        if moved and abs(moved) < page:
            # Copies the pixels instead of painting them again; first, while nothing is out of date.
            self.viewport().scroll(0, moved)
        bar = self.verticalScrollBar()
        bar.setPageStep(page)
        bar.setRange(0, self._column.maximum(page))
        bar.setValue(value)
        left = (self.viewport().width() - width) // 2
        # Views within a page of what is visible stay.
        keep = self._column.between(value - page, value + 2 * page)
        for message_id in [one for one in self._views.bound if self._column.index[one] not in keep]:
            self._views.release(message_id)
        for message_id, view in self._views.bound.items():
            at = self._column.index[message_id]
            area = QRect(left, self._column.tops[at] - value, width, self._column.items[at].height)
            if view.geometry() != area:
                view.setGeometry(area)
            view.place()
            if view.isHidden():
                view.show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        # What is not urgent waits until the edge of the window is let go.
        self._work_timer.start(_SETTLED_MS)
        self._column.change_width(self._column_width())
        self._arrange()
        self._place_jump()
        self._popover.hide()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._arrange()

    # Work between frames

    def _plan_work(self) -> None:
        if not self._work_timer.isActive() and self._next_task() is not None:
            self._work_timer.start(_WORK_MS)

    def _next_task(self) -> MessageView | Item | None:
        """What to do when there is time: text not yet in, code not yet coloured, a neighbour not built."""
        busy = None
        for view in self._views.bound.values():
            if not view.body.is_loaded():
                return view
            if view.body.has_work():
                busy = view
        return busy or self._neighbour()

    def _neighbour(self) -> Item | None:
        page = self.viewport().height()
        around = self._column.between(self._value - page // 2, self._value + page + page // 2)
        items = (self._column.items[at] for at in around)
        return next((item for item in items if item.data.id not in self._views.bound), None)

    def _work(self) -> None:
        task = self._next_task()
        if task is None or not self.isVisible():
            return
        width = self._column_width()
        if isinstance(task, Item):
            self._measure(task, width, perf_counter() + _WORK_BUDGET_S)
        else:
            item = self._column[task.data.id]
            if not task.body.is_loaded():
                task.body.advance(_WORK_BUDGET_S)
            else:
                task.body.work(_WORK_BUDGET_S)
            item.width = 0
        self._arrange()

    # Scrolling

    def scroll_to_end(self) -> None:
        """Go to the end and follow it."""
        self._follow = True
        self._arrange()

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        if self._placing:
            return
        bar = self.verticalScrollBar()
        value = bar.value()
        self._follow = value >= bar.maximum() - _NEAR_END
        self._popover.hide()
        if len(self._column):
            self._anchor = self._column.anchor(value, self.viewport().height())
        self._arrange()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        page = max(1, self.viewport().height() - 2 * theme.S5)
        back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        steps = {
            Qt.Key.Key_Up: -2 * theme.S5,
            Qt.Key.Key_Down: 2 * theme.S5,
            Qt.Key.Key_PageUp: -page,
            Qt.Key.Key_PageDown: page,
            Qt.Key.Key_Space: -page if back else page,
            Qt.Key.Key_Home: -bar.maximum(),
            Qt.Key.Key_End: bar.maximum(),
        }
        step = steps.get(Qt.Key(event.key()))
        if step is None:
            event.ignore()
        else:
            bar.setValue(bar.value() + step)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._popover.hide()

    def _drag(self, at: QPoint) -> None:
        self._popover.hide()
        self._edge_scroll.drag(at)

    # Around the messages

    def _show_jump(self) -> None:
        page = self.viewport().height()
        below = self.verticalScrollBar().maximum() - self._value
        streaming = len(self._column) > 0 and self._column.items[-1].data.state == "streaming"
        shown = not self._follow and (below > page or (streaming and below > theme.S5))
        if shown == self._jump.isHidden():
            self._jump.setVisible(shown)
            self._place_jump()

    def _place_jump(self) -> None:
        size = self._jump.sizeHint()
        x = (self.viewport().width() - size.width()) // 2
        self._jump.setGeometry(QRect(QPoint(x, self.height() - size.height() - theme.S3), size))
        self._jump.raise_()

    def _ask_link(self, address: str, at: QPoint) -> None:
        self._popover.ask(address, self.mapFromGlobal(at))

    def _recolour(self) -> None:
        for view in self._views.bound.values():
            view.recolour()
        self._views.forget_all()
        self._plan_work()
