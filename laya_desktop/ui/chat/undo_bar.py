"""The bar under the list of chats that offers to bring deleted ones back. UI thread only."""

from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QHBoxLayout, QWidget

from laya_desktop.ui import theme
from laya_desktop.ui.style import rounded
from laya_desktop.ui.widgets import Retranslating, Text, button

_UNDO_MS = 8000


class UndoBar(Retranslating, QWidget):
    """Says that chats were deleted, for a few seconds; emits `undone` with the id of each, the last first."""

    undone = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._conversations: list[str] = []
        self._text = Text(size=13)
        self._button = button("link")
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.S3, theme.S1, theme.S1, theme.S1)
        row.addWidget(self._text, 1)
        row.addWidget(self._button)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_UNDO_MS)
        self._timer.timeout.connect(self._forget)
        self._button.clicked.connect(self._undo)
        self.hide()
        self.retranslate()

    def retranslate(self) -> None:
        count = len(self._conversations)
        self._text.setText(
            self.tr("Chats deleted: {}").format(count) if count > 1 else self.tr("Chat deleted")
        )
        self._button.setText(self.tr("Undo"))

    def offer(self, conversation: str) -> None:
        """Add a chat to those that Undo brings back."""
        self._conversations.append(conversation)
        self.retranslate()
        self.show()
        self._timer.start()

    def paintEvent(self, event: QEvent) -> None:
        tokens = theme.current()
        rounded(QPainter(self), self.rect(), theme.RADIUS, tokens.background, tokens.control_border)

    def _undo(self) -> None:
        self._timer.stop()
        conversations = self._conversations
        self._forget()
        for conversation in reversed(conversations):
            self.undone.emit(conversation)

    def _forget(self) -> None:
        self._conversations = []
        self.hide()
