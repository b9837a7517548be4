"""The prompt's text field: grows with its text, sends on Enter, takes plain text only. UI thread only."""

from PySide6.QtCore import QMimeData, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QPalette, QResizeEvent, QTextOption
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy

from laya_desktop.ui import theme

_MAX_LINES = 9
_LONG_LINE = 10_000


def clean(text: str) -> str:
    """Text that every layer below can carry: no NUL, no lone surrogate, plain newlines."""
    text = text.replace("\0", "").replace("\u2028", "\n").replace("\u2029", "\n")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class PromptEdit(QPlainTextEdit):
    """Emits `entered` when Enter is pressed outside an input method's composition."""

    entered = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFont(theme.font())
        self.setTabChangesFocus(True)
        # Always on, so that its coming never lays out a long text a second time; unused, it is not drawn.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(2)
        self.viewport().setBackgroundRole(QPalette.ColorRole.Base)
        self.textChanged.connect(self._fit)
        self._fit()

    def composing(self) -> bool:
        """Whether an input method is composing text that is not committed yet."""
        layout = self.textCursor().block().layout()
        return layout is not None and bool(layout.preeditAreaText())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
        elif self.composing():
            event.accept()
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            # Qt would insert a line separator, which is not a newline.
            self.insertPlainText("\n")
            self.ensureCursorVisible()
        else:
            self.entered.emit()

    def insertFromMimeData(self, source: QMimeData) -> None:
        if not source.hasText():
            return
        text = clean(source.text())
        if max(map(len, text.splitlines()), default=0) > _LONG_LINE:
            # Looking for word breaks in endless lines took a second, in one endless word a minute.
            self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        self.insertPlainText(text)
        self.ensureCursorVisible()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def sizeHint(self) -> QSize:
        return QSize(240, self.height())

    def _fit(self) -> None:
        if self.document().isEmpty():
            self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        # The document's height comes in lines, wrapped ones counted.
        lines = min(_MAX_LINES, max(1, int(self.document().size().height())))
        height = (
            round(lines * QFontMetricsF(self.font()).lineSpacing() + 2 * self.document().documentMargin()) + 2
        )
        if height != self.height():
            self.setFixedHeight(height)
