"""What an empty chat shows: a greeting with examples, or how to get a model. UI thread only."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from laya_desktop.ui import icons, theme
from laya_desktop.ui.layouts import ScrollPage
from laya_desktop.ui.models.guide import ModelGuide
from laya_desktop.ui.services import Services
from laya_desktop.ui.style import rounded, shows_focus
from laya_desktop.ui.widgets import Retranslating, Text


class _Example(QPushButton):
    """A prompt to start with, as a card."""

    def __init__(self) -> None:
        super().__init__()
        self.setFont(theme.font(13))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAutoDefault(False)

    def sizeHint(self) -> QSize:
        return QSize(200, 64)

    def minimumSizeHint(self) -> QSize:
        return QSize(140, 64)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme.current()
        painter = QPainter(self)
        focused = shows_focus(self)
        shade = 0.08 if self.isDown() else 0.04 if self.underMouse() else 0
        border = tokens.focus if focused else tokens.line
        ground = theme.mix(tokens.panel, tokens.text, shade)
        rounded(painter, self.rect(), theme.CARD_RADIUS, ground, border, 2 if focused else 1)
        painter.setPen(tokens.color("text"))
        area = self.rect().adjusted(theme.S3, theme.S2, -theme.S3, -theme.S2)
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextWordWrap, self.text())


class Welcome(Retranslating, QWidget):
    """Emits `example_chosen(text)`."""

    example_chosen = Signal(str)

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._has_models = True
        self._logo = _Logo()
        self._greeting = Text(size=theme.TITLE, bold=True)
        self._hint = Text(tone="muted", wrap=True)
        for label in (self._greeting, self._hint):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._examples = [_Example() for _ in range(4)]
        self._grid_holder = QWidget()
        grid = QGridLayout(self._grid_holder)
        grid.setContentsMargins(0, theme.S4, 0, 0)
        grid.setSpacing(theme.S2)
        for number, example in enumerate(self._examples):
            grid.addWidget(example, number // 2, number % 2)
            example.clicked.connect(lambda _checked=False, one=example: self.example_chosen.emit(one.text()))
        self._guide = ModelGuide(services)
        page = ScrollPage(max_width=660, centred=True)
        page.column.addWidget(self._logo, 0, Qt.AlignmentFlag.AlignHCenter)
        for widget in (self._greeting, self._hint, self._grid_holder, self._guide):
            page.column.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(page)
        self.retranslate()
        self.set_has_models(True)

    def retranslate(self) -> None:
        self._greeting.setText(self.tr("What can I do for you?"))
        self._hint.setText(
            self.tr("Everything runs on this computer. The smallest model that can answer well is chosen.")
        )
        texts = (
            self.tr("Where is the Eiffel Tower?"),
            self.tr("Write a Python function that reverses a string."),
            self.tr("Explain in three sentences why the sky is blue."),
            self.tr("Give me five ideas for a rainy weekend."),
        )
        for example, text in zip(self._examples, texts, strict=True):
            example.setText(text)
            example.setAccessibleName(text)

    def set_has_models(self, has_models: bool) -> None:
        """Examples where there is a model to answer them, else how to get one."""
        self._hint.setVisible(has_models)
        self._greeting.setVisible(has_models)
        self._grid_holder.setVisible(has_models)
        self._guide.setVisible(not has_models)


class _Logo(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(56, 56)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).drawPixmap(0, 0, icons.pixmap("logo", "", 56, self.devicePixelRatioF()))
