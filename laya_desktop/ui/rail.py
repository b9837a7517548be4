"""The window's left rail: the pages, and at its foot the engine's state and memory. UI thread only."""

from PySide6.QtCore import QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QVBoxLayout

from laya_desktop.core.events import MemorySample
from laya_desktop.core.types import ModelState
from laya_desktop.ui import engine_text, format, icons, theme
from laya_desktop.ui.services import EngineState, Services
from laya_desktop.ui.style import focus_ring, rounded, shows_focus
from laya_desktop.ui.widgets import Panel, Retranslating, paint_bar

WIDE, NARROW = 72, 52
_DOT, _GAP = 6, 3  # leaves room for the longest state


class _RailButton(QAbstractButton):
    """A page: icon above label; only the icon while the rail is narrow."""

    def __init__(self, icon: str) -> None:
        super().__init__()
        self._icon = icon
        self.setCheckable(True)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def sizeHint(self) -> QSize:
        return QSize(40, 56 if self._labelled() else 40)

    def _labelled(self) -> bool:
        return self.parentWidget() is None or self.parentWidget().width() >= WIDE

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme.current()
        painter = QPainter(self)
        if self.isChecked():
            rounded(painter, self.rect(), theme.RADIUS, tokens.accent_tint)
        elif self.underMouse():
            rounded(painter, self.rect(), theme.RADIUS, theme.mix(tokens.rail, tokens.text, 0.06))
        colour = tokens.accent if self.isChecked() else tokens.muted
        labelled = self._labelled()
        top = 9 if labelled else (self.height() - 20) / 2
        icons.paint(painter, self._icon, colour, QRectF((self.width() - 20) / 2, top, 20, 20))
        if labelled:
            painter.setFont(theme.font(theme.SMALL))
            painter.setPen(theme.current().color("accent" if self.isChecked() else "muted"))
            area = QRect(0, 32, self.width(), 20)
            text = painter.fontMetrics().elidedText(
                self.text(), Qt.TextElideMode.ElideRight, self.width() - 2
            )
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, text)
        if shows_focus(self):
            focus_ring(painter, self.rect())


class _Foot(Retranslating, QAbstractButton):
    """Engine state and memory in a few pixels; opens the monitor."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._state = ""
        self._token = "muted"
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        services.bridge.memory_changed.connect(self.refresh)
        services.bridge.models_changed.connect(self.refresh)
        services.state.engine_changed.connect(self.refresh)
        self.retranslate()

    def sizeHint(self) -> QSize:
        return QSize(40, 62)

    def retranslate(self) -> None:
        self.refresh()

    def refresh(self, _event: object = None) -> None:
        self._state, self._token, explained = self._describe()
        memory = self._services.bridge.memory
        tip = explained if memory is None else explained + "\n" + self._describe_memory(memory)
        self.setToolTip(tip)
        self.setAccessibleName(tip)
        self.update()

    def _describe(self) -> tuple[str, str, str]:
        """Short text, colour token and a sentence."""
        state = self._services.state
        if state.engine is EngineState.STARTING:
            return self.tr("Starting"), "warn", self.tr("The engine is starting.")
        if state.engine is EngineState.FAILED:
            error = state.engine_error
            return (
                self.tr("Stopped"),
                "danger",
                engine_text.error(error) if error else self.tr("The engine stopped."),
            )
        models = self._services.bridge.models
        busy = sum(model.streams for model in models)
        if busy:
            return self.tr("Busy"), "accent", self.tr("%n answer(s) are being written.", "", busy)
        if any(model.state == ModelState.LOADING for model in models):
            return self.tr("Loading"), "warn", self.tr("A model is being loaded.")
        return self.tr("Ready"), "ok", self.tr("The engine is ready.")

    def _describe_memory(self, memory: MemorySample) -> str:
        text = self.tr(
            "Memory: {used} of {limit} in use, {models} by models, {reserved} kept for the system."
        )
        return text.format(
            used=format.size(memory.used),
            limit=format.size(memory.limit),
            models=format.size(sum(memory.models.values())),
            reserved=format.size(memory.reserved),
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme.current()
        painter = QPainter(self)
        if self.underMouse():
            rounded(painter, self.rect(), theme.RADIUS, theme.mix(tokens.rail, tokens.text, 0.06))
        painter.setFont(theme.font(theme.SMALL))
        metrics = painter.fontMetrics()
        wide = self.width() >= 56
        before = _DOT + _GAP if wide else _DOT
        room = self.width() - before
        text = metrics.elidedText(self._state, Qt.TextElideMode.ElideRight, room) if wide else ""
        left = (room - metrics.horizontalAdvance(text)) // 2
        rounded(painter, QRect(left, 9, _DOT, _DOT), _DOT / 2, tokens.color(self._token))
        painter.setPen(tokens.color("muted"))
        painter.drawText(QRect(left + before, 2, self.width(), 20), Qt.AlignmentFlag.AlignVCenter, text)
        memory = self._services.bridge.memory
        if memory is not None and memory.limit > 0:
            self._paint_memory(painter, memory)
        if shows_focus(self):
            focus_ring(painter, self.rect())

    def _paint_memory(self, painter: QPainter, memory: MemorySample) -> None:
        tokens = theme.current()
        bar = QRect(4, 27, self.width() - 8, 6)
        share = memory.used / memory.limit
        room = 1 - memory.reserved / memory.limit
        paint_bar(painter, bar, share, "danger" if share > room else "accent")
        start = bar.x() + round(bar.width() * room)
        painter.setPen(tokens.color("muted"))
        for x in range(start, bar.right() + 1, 3):
            painter.drawLine(x, bar.bottom(), min(x + 2, bar.right()), bar.top())
        used, limit = round(memory.used / 1024**3), round(memory.limit / 1024**3)
        metrics = painter.fontMetrics()
        texts = (f"{used} / {limit} GB", f"{used}/{limit} GB", f"{used} / {limit}", f"{used}/{limit}")
        text = next((one for one in texts if metrics.horizontalAdvance(one) <= self.width()), texts[-1])
        painter.drawText(QRect(0, 38, self.width(), 20), Qt.AlignmentFlag.AlignCenter, text)


class Rail(Retranslating, Panel):
    """Emits `chosen(index)` when a page is picked, `monitor_wanted` from the foot."""

    chosen = Signal(int)
    monitor_wanted = Signal()

    def __init__(self, services: Services, pages: tuple[str, ...]) -> None:
        super().__init__("rail", ("right",))
        self._pages = pages
        self._group = QButtonGroup(self)
        self._foot = _Foot(services)
        column = QVBoxLayout(self)
        column.setContentsMargins(6, theme.S3, 7, theme.S3)
        column.setSpacing(theme.S1)
        for index, name in enumerate(pages):
            entry = _RailButton(name)
            self._group.addButton(entry, index)
            column.addWidget(entry)
        column.addStretch(1)
        column.addWidget(self._foot)
        self._group.idClicked.connect(self.chosen)
        self._foot.clicked.connect(self.monitor_wanted)
        self.setFixedWidth(WIDE)
        self.retranslate()

    def select(self, index: int) -> None:
        """Mark a page as shown."""
        self._group.button(index).setChecked(True)

    def set_narrow(self, narrow: bool) -> None:
        """Icons only while the window is small."""
        self.setFixedWidth(NARROW if narrow else WIDE)
        for entry in self._group.buttons():
            entry.updateGeometry()

    def retranslate(self) -> None:
        labels = {
            "chat": self.tr("Chat"),
            "models": self.tr("Models"),
            "routing": self.tr("Routing"),
            "monitor": self.tr("Monitor"),
            "settings": self.tr("Settings"),
        }
        for index, name in enumerate(self._pages):
            entry = self._group.button(index)
            entry.setText(labels[name])
            entry.setAccessibleName(labels[name])
            key = QKeySequence(f"Ctrl+{index + 1}").toString(QKeySequence.SequenceFormat.NativeText)
            entry.setToolTip(f"{labels[name]} ({key})")
