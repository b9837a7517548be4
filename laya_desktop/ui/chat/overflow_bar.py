"""What stands above the composer when a chat no longer fits its model's context. UI thread only."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QVBoxLayout

from laya_desktop.ui import theme
from laya_desktop.ui.layouts import Flow
from laya_desktop.ui.style import rounded
from laya_desktop.ui.widgets import Retranslating, Text, button


class OverflowBar(Retranslating, QFrame):
    """Emits `new_wanted` or `drop_wanted`."""

    new_wanted = Signal()
    drop_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._text = Text(size=13, wrap=True)
        self._new, self._drop = button(), button()
        column = QVBoxLayout(self)
        column.setContentsMargins(theme.S3, theme.S2, theme.S3, theme.S2)
        column.setSpacing(theme.S2)
        column.addWidget(self._text)
        actions = Flow()
        actions.addWidget(self._new)
        actions.addWidget(self._drop)
        column.addLayout(actions)
        self._new.clicked.connect(self.new_wanted)
        self._drop.clicked.connect(self.drop_wanted)
        self._dropped: tuple[str, ...] = ()
        self.hide()
        self.retranslate()

    def retranslate(self) -> None:
        text = self.tr(
            "This chat is longer than the model's context. Start a new chat, or leave the oldest turns "
            "out of what the model sees. Nothing is deleted."
        )
        if self._dropped:
            starts = " ".join(f"“{_start_of(one)}”" for one in self._dropped[:3])
            count = len(self._dropped)
            text = self.tr("%n older turn(s) are no longer sent to the model: {0}", "", count).format(
                f"{starts} …" if count > 3 else starts
            )
        self._text.setText(text)
        self._new.setText(self.tr("New chat"))
        self._drop.setText(self.tr("Drop oldest turns and retry"))

    def offer(self, *, can_drop: bool) -> None:
        """Show the bar; a single message that is too long cannot be helped by dropping."""
        self._dropped = ()
        self._new.show()
        self._drop.setVisible(can_drop)
        self.retranslate()
        self.show()

    def tell_dropped(self, texts: tuple[str, ...]) -> None:
        """Say which turns are no longer sent; the bar goes when there are none."""
        self._dropped = texts
        self._new.hide()
        self._drop.hide()
        self.retranslate()
        self.setVisible(bool(texts))

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme.current()
        rounded(QPainter(self), self.rect(), theme.RADIUS, tokens.warn_tint, tokens.warn)


def _start_of(text: str, most: int = 32) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most].rstrip()}…"
