"""Messages across the top of the window: about the whole app, copyable and dismissable. UI thread only."""

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from laya_desktop.ui import icons, theme
from laya_desktop.ui.widgets import IconButton, Retranslating, Text, button

BannerTone = Literal["warn", "danger", "ok"]


class _Banner(Retranslating, QWidget):
    def __init__(
        self,
        tone: BannerTone,
        text: Callable[[], str],
        action: tuple[Callable[[], str], Callable[[], None]] | None,
    ) -> None:
        super().__init__()
        self._tone, self._source, self._action = tone, text, action
        self._text = Text(size=13, wrap=True, selectable=True)
        self._text.setAlignment(Qt.AlignmentFlag.AlignVCenter)
        self._copy = IconButton("copy", token="text", size=28)
        self.close_button = IconButton("close", token="text", size=28)
        self._copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._text.text()))
        row = QHBoxLayout(self)
        row.setContentsMargins(44, theme.S1, theme.S3, theme.S1)
        row.setSpacing(theme.S2)
        row.addWidget(self._text, 1)
        if action is not None:
            self._button = button()
            self._button.clicked.connect(action[1])
            row.addWidget(self._button)
        row.addWidget(self._copy)
        row.addWidget(self.close_button)
        self.retranslate()

    def retranslate(self) -> None:
        self._text.setText(self._source())
        self._copy.describe(self.tr("Copy message"))
        self.close_button.describe(self.tr("Dismiss"))
        if self._action is not None:
            self._button.setText(self._action[0]())

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme.current()
        painter = QPainter(self)
        painter.fillRect(event.rect(), tokens.color(f"{self._tone}_tint"))
        painter.fillRect(0, self.height() - 1, self.width(), 1, tokens.color("line"))
        icon = icons.pixmap("warning", getattr(tokens, self._tone), 18, self.devicePixelRatioF())
        painter.drawPixmap(theme.S4, (self.height() - 18) // 2, icon)


class BannerStack(QWidget):
    """Shows at most one banner per key; an empty stack takes no room."""

    def __init__(self) -> None:
        super().__init__()
        self._banners: dict[str, _Banner] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self.hide()

    def show_banner(
        self,
        key: str,
        tone: BannerTone,
        text: Callable[[], str],
        action: tuple[Callable[[], str], Callable[[], None]] | None = None,
    ) -> None:
        """Show or replace the banner `key`. Texts are functions, so that they follow the language."""
        self.dismiss(key)
        banner = _Banner(tone, text, action)
        banner.close_button.clicked.connect(lambda: self.dismiss(key))
        self._banners[key] = banner
        self._column.addWidget(banner)
        self.show()

    def dismiss(self, key: str) -> None:
        """Remove the banner `key` if it is shown."""
        banner = self._banners.pop(key, None)
        if banner is not None:
            banner.hide()
            banner.deleteLater()
        if not self._banners:
            self.hide()

    def keys(self) -> tuple[str, ...]:
        """The banners that are shown."""
        return tuple(self._banners)
