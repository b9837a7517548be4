"""Asks before a link leaves the app: shows where it leads, then opens it or copies the address. UI thread."""

from PySide6.QtCore import QPoint, Qt, QUrl, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from laya_desktop.ui import theme
from laya_desktop.ui.style import rounded
from laya_desktop.ui.widgets import Retranslating, Text, button

_SCHEMES = frozenset(("http", "https", "mailto"))
_WIDTH = 420


class LinkPopover(Retranslating, QWidget):
    """A small panel inside the transcript; Esc, scrolling and a click elsewhere close it."""

    opened = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.hide()
        self._address = ""
        self._label = Text(wrap=True, selectable=True, size=theme.SMALL)
        self.open_button = button("primary")
        self._copy = button()
        self.open_button.clicked.connect(self._on_open)
        self._copy.clicked.connect(self._on_copy)
        row = QHBoxLayout()
        row.setSpacing(theme.S2)
        row.addWidget(self.open_button)
        row.addWidget(self._copy)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(theme.S3, theme.S3, theme.S3, theme.S3)
        column.setSpacing(theme.S2)
        column.addWidget(self._label)
        column.addLayout(row)
        self.retranslate()

    def retranslate(self) -> None:
        self.setAccessibleName(self.tr("Link"))
        self.open_button.setText(self.tr("Open in the browser"))
        self._copy.setText(self.tr("Copy address"))

    def ask(self, address: str, at: QPoint) -> None:
        """Show `address` beside the place `at` (in the parent's coordinates)."""
        self._address = address
        # A zero-width space after every separator lets a long address wrap.
        self._label.setText(address.replace("/", "/\u200b").replace("&", "&\u200b"))
        self.open_button.setVisible(QUrl(address).scheme().lower() in _SCHEMES)
        room = self.parentWidget().rect().adjusted(theme.S2, theme.S2, -theme.S2, -theme.S2)
        width = min(_WIDTH, room.width())
        self.setFixedWidth(width)
        height = self.heightForWidth(width)
        self.resize(width, height)
        y = at.y() + theme.S4
        if y + height > room.bottom():
            y = at.y() - height - theme.S2
        x = max(room.left(), min(at.x() - theme.S4, room.right() - width))
        self.move(x, max(room.top(), y))
        self.show()
        self.raise_()
        (self._copy if self.open_button.isHidden() else self.open_button).setFocus(
            Qt.FocusReason.PopupFocusReason
        )

    def text(self) -> str:
        """The address that is shown."""
        return self._address

    def _on_open(self) -> None:
        self.hide()
        self.opened.emit(self._address)

    def _on_copy(self) -> None:
        self.hide()
        QGuiApplication.clipboard().setText(self._address)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
            self.parentWidget().setFocus()
            return
        super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme.current()
        rounded(QPainter(self), self.rect(), theme.RADIUS, tokens.panel, tokens.control_border)
