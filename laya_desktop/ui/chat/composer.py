"""The composer below a chat: text, who answers, context used, Send that turns into Stop. UI thread only."""

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPushButton,
    QStyle,
    QStyleOptionButton,
    QStylePainter,
    QVBoxLayout,
)

from laya_desktop.ui import format, icons, theme
from laya_desktop.ui.chat.model_picker import ModelPicker
from laya_desktop.ui.chat.prompt_edit import PromptEdit, clean
from laya_desktop.ui.style import rounded
from laya_desktop.ui.widgets import Bar, Retranslating, Text


class SendButton(Retranslating, QPushButton):
    """Send, or Stop while the chat streams."""

    def __init__(self) -> None:
        super().__init__()
        self._stops = False
        self.setProperty("kind", "primary")
        self.setFont(theme.font(13, bold=True))
        self.setAutoDefault(False)
        self.retranslate()

    @property
    def stops(self) -> bool:
        return self._stops

    def set_stops(self, stops: bool) -> None:
        self._stops = stops
        self.retranslate()

    def retranslate(self) -> None:
        label = self.tr("Stop") if self._stops else self.tr("Send")
        self.setText(label)
        self.setAccessibleName(label)
        key = QKeySequence(Qt.Key.Key_Escape if self._stops else Qt.Key.Key_Return)
        self.setToolTip(f"{label} ({key.toString(QKeySequence.SequenceFormat.NativeText)})")

    def sizeHint(self) -> QSize:
        widest = max(
            self.fontMetrics().horizontalAdvance(text) for text in (self.tr("Stop"), self.tr("Send"))
        )
        return QSize(widest + 52, 32)

    def paintEvent(self, event: QPaintEvent) -> None:
        text, tokens = self.text(), theme.current()
        # Only the option loses its text: changing the widget here would ask for the next paint, for ever.
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.text = ""
        painter = QStylePainter(self)
        painter.drawControl(QStyle.ControlElement.CE_PushButton, option)
        colour = tokens.on_accent if self.isEnabled() else tokens.disabled
        width = self.fontMetrics().horizontalAdvance(text) + 22
        left = (self.width() - width) / 2
        painter.setPen(colour)
        area = QRectF(left, 0, self.width(), self.height())
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, text)
        icon = QRectF(left + width - 16, (self.height() - 16) / 2, 16, 16)
        icons.paint(painter, "stop" if self._stops else "send", colour, icon)


class Composer(Retranslating, QFrame):
    """Emits `submitted(text)` once per send and `stop_requested` from Stop.

    While `set_streaming(True)` or `set_ready(False)` holds, Enter does nothing and the text stays.
    """

    submitted = Signal(str)
    stop_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._streaming = False
        self._ready = True
        self._context: tuple[int, int] | None = None
        self.edit = PromptEdit()
        self.picker = ModelPicker()
        self.button = SendButton()
        self._meter_text = Text(tone="muted", size=theme.SMALL)
        self._meter = Bar()
        self._meter.setFixedWidth(72)
        column = QVBoxLayout(self)
        column.setContentsMargins(theme.S3, theme.S3, theme.S3, theme.S3)
        column.setSpacing(theme.S2)
        column.addWidget(self.edit)
        row = QHBoxLayout()
        row.setSpacing(theme.S2)
        row.addWidget(self.picker)
        row.addStretch(1)
        row.addWidget(self._meter_text)
        row.addWidget(self._meter)
        row.addWidget(self.button)
        column.addLayout(row)
        self.edit.entered.connect(self.send)
        self.edit.textChanged.connect(self._refresh)
        self.edit.installEventFilter(self)
        self.button.clicked.connect(self._press)
        self.retranslate()
        self.set_context(None)
        self._refresh()

    def send(self) -> None:
        """Send the text unless it is blank, being composed, or the chat cannot take it now."""
        text = clean(self.edit.toPlainText())
        if self._streaming or not self._ready or self.edit.composing() or not text.strip():
            return
        self.edit.clear()
        self.submitted.emit(text)

    def set_streaming(self, streaming: bool) -> None:
        """Turn Send into Stop and back."""
        self._streaming = streaming
        self._refresh()

    def set_ready(self, ready: bool) -> None:
        """Whether the chat can take a question."""
        self._ready = ready
        self._refresh()

    def set_context(self, context: tuple[int, int] | None) -> None:
        """Show the context tokens used and the limit; None hides the meter."""
        self._context = context
        for widget in (self._meter, self._meter_text):
            widget.setVisible(context is not None and context[1] > 0)
        if context is not None and context[1] > 0:
            used, limit = context
            self._meter.set_share(used / limit, token="warn" if used > 0.85 * limit else "accent")
            text = self.tr("context {0} / {1}").format(format.count(used), format.context(limit))
            self._meter_text.setText(text)

    def retranslate(self) -> None:
        self.edit.setPlaceholderText(self.tr("Ask anything"))
        self.edit.setAccessibleName(self.tr("Message"))
        self.edit.setToolTip("")
        self.set_context(self._context)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.update()
        return False

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.edit.setFocus(Qt.FocusReason.MouseFocusReason)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme.current()
        focused = self.edit.hasFocus()
        border = tokens.focus if focused else tokens.control_border
        rounded(QPainter(self), self.rect(), theme.CARD_RADIUS, tokens.panel, border, 1.5 if focused else 1)

    def _press(self) -> None:
        if self._streaming:
            self.stop_requested.emit()
        else:
            self.send()
        # The button is disabled now: without this the focus would leave the composer.
        self.edit.setFocus()

    def _refresh(self) -> None:
        if self.button.stops != self._streaming:
            self.button.set_stops(self._streaming)
        self.button.setEnabled(self._streaming or (self._ready and not self.edit.document().isEmpty()))
