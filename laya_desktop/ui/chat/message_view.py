"""One message on screen: header, text, error, footer and what can be done with it. UI thread only.

Views are recycled: `show_message` binds one to another message. The transcript gives the width and takes
the height; there is no `QLayout`, because nothing here moves by itself.
"""

from dataclasses import dataclass
from math import ceil
from typing import Literal

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QEnterEvent, QFontMetrics, QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from laya_desktop.ui import theme
from laya_desktop.ui.chat.text_body import TextBody
from laya_desktop.ui.style import focus_ring, rounded
from laya_desktop.ui.widgets import Chip, ElidedText, Retranslating, Text, chip_width, paint_chip

State = Literal["complete", "streaming", "error", "cancelled"]

_HEADER = 24
_FOOTER = 20
_NAME_LEAST = 100
_BUBBLE_SHARE = 0.85
_LONG = 20_000  # characters from which a bubble is not fitted to its text
LINE = 21
"""Pixels that a line of text takes, for estimates."""


@dataclass(slots=True)
class MessageData:
    """What the transcript shows of one turn.

    `status` says what a message that has no text yet is waiting for, `footer` how it went; `why` is the text
    of the chip that explains the choice of model. All are ready to be read, in the user's language.
    """

    id: str
    role: Literal["user", "assistant"]
    text: str = ""
    model: str = ""
    why: str = ""
    chips: tuple[str, ...] = ()
    state: State = "complete"
    status: str = ""
    footer: str = ""
    error: str = ""


class WhyChip(QAbstractButton):
    """The chip that explains; a button, so that keys reach it too."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFont(theme.font(theme.SMALL))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def sizeHint(self) -> QSize:
        return QSize(chip_width(self.text(), self.fontMetrics()), _HEADER)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        paint_chip(painter, self.rect(), self.text(), "accent")
        if self.hasFocus():
            focus_ring(painter, self.rect(), self.height() / 2)


class ActionLink(QAbstractButton):
    """A word to click. A quiet one shows only while its message is pointed at or it has the focus."""

    def __init__(self, parent: QWidget, token: str = "muted", *, quiet: bool = True) -> None:
        super().__init__(parent)
        self._token, self._quiet, self._revealed = token, quiet, False
        self.setFont(theme.font(theme.SMALL))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def reveal(self, shown: bool) -> None:
        if shown != self._revealed:
            self._revealed = shown
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance(self.text()) + 2 * theme.S1, _FOOTER)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._quiet and not (self._revealed or self.hasFocus()):
            return
        painter = QPainter(self)
        token = "text" if self.underMouse() and self._token == "muted" else self._token
        painter.setPen(theme.current().color(token))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.text())
        if self.hasFocus():
            focus_ring(painter, self.rect(), theme.S1)


class ErrorPanel(Retranslating, QWidget):
    """What went wrong, inline: to read, to copy, to try again."""

    retry = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._label = Text(tone="danger", wrap=True, selectable=True)
        self._label.setParent(self)
        self.copy_link = ActionLink(self, "danger", quiet=False)
        self.retry_link = ActionLink(self, "danger", quiet=False)
        self.copy_link.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._label.text()))
        self.retry_link.clicked.connect(self.retry)
        self.retranslate()

    def retranslate(self) -> None:
        self.copy_link.setText(self.tr("Copy"))
        self.copy_link.setAccessibleName(self.tr("Copy the error"))
        self.retry_link.setText(self.tr("Retry"))

    def set_text(self, text: str) -> None:
        self._label.setText(text)
        self.setAccessibleName(text)

    def arrange(self, width: int) -> int:
        """Lay out at `width`; the height this needs."""
        inner = width - 2 * theme.S4
        height = max(LINE, self._label.heightForWidth(inner))
        self._label.setGeometry(theme.S4, theme.S3, inner, height)
        y = theme.S3 + height + theme.S1
        x = theme.S4 - theme.S1
        for link in (self.retry_link, self.copy_link):
            link.setGeometry(QRect(QPoint(x, y), link.sizeHint()))
            x = link.geometry().right() + theme.S2
        return y + _FOOTER + theme.S2

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme.current()
        rounded(QPainter(self), self.rect(), theme.CARD_RADIUS, tokens.danger_tint)


class MessageView(Retranslating, QWidget):
    """Shows one message. `retry_requested` and `why_requested` carry its id."""

    retry_requested = Signal(str)
    why_requested = Signal(str)
    link_clicked = Signal(str, QPoint)
    dragged_beyond = Signal(QPoint)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.data = MessageData("", "user")
        self.body = TextBody(self)
        self._name = ElidedText(bold=True)
        self._name.setParent(self)
        self.why_chip = WhyChip(self)
        self._chips: list[Chip] = []
        self._footer = ElidedText(tone="muted", size=theme.SMALL)
        self._footer.setParent(self)
        self._copy = ActionLink(self)
        self._retry = ActionLink(self)
        self._error: ErrorPanel | None = None
        self._bubble = QRect()
        self._areas: dict[QWidget, QRect] = {}
        self._copied = False
        self.why_chip.clicked.connect(lambda: self.why_requested.emit(self.data.id))
        self._copy.clicked.connect(self._copy_message)
        self._retry.clicked.connect(lambda: self.retry_requested.emit(self.data.id))
        self.body.link_clicked.connect(self.link_clicked)
        self.body.dragged_beyond.connect(self.dragged_beyond)

    # What is shown

    def show_message(self, data: MessageData) -> None:
        """Bind to a message. Its text is queued; `body.advance` inserts it."""
        self.data = data
        self.body.viewport().setAutoFillBackground(data.role == "assistant")
        plain = data.role == "user"
        if data.state == "streaming":
            self.body.start(plain=plain, live=True)
            self.body.feed(data.text)
        else:
            self.body.set_text(data.text, plain=plain)
        self._copied = False
        self._reveal(self.underMouse())
        self.refresh()

    def refresh(self) -> None:
        """Show changed fields other than the text."""
        data = self.data
        answer = data.role == "assistant"
        self._name.setText(data.model)
        self._name.setVisible(answer and bool(data.model))
        self.why_chip.setText(self.tr("↳ {0}").format(data.why))
        self.why_chip.setAccessibleName(data.why)
        self.why_chip.setVisible(answer and bool(data.why))
        self._show_chips(data.chips if answer else ())
        busy = data.state == "streaming"
        self._footer.setText(data.status if busy and data.status else data.footer or data.status)
        self._footer.setVisible(answer)
        self._copy.setVisible(bool(data.text))
        self._retry.setVisible(answer and data.state == "cancelled")
        self.body.setVisible(bool(data.text))
        self._show_error(data.error if data.state == "error" else "")
        self.retranslate()

    def retranslate(self) -> None:
        who = self.tr("You") if self.data.role == "user" else self.data.model or self.tr("Assistant")
        self.setAccessibleName(self.tr("Message from {0}").format(who))
        self.body.setAccessibleName(self.tr("Text from {0}").format(who))
        self.body.viewport().update()
        self._copy.setText(self.tr("Copied") if self._copied else self.tr("Copy"))
        self._copy.setAccessibleName(self.tr("Copy the message"))
        self._retry.setText(self.tr("Retry"))

    def recolour(self) -> None:
        """Follow the theme."""
        self.body.recolour()
        self.update()

    def error_panel(self) -> ErrorPanel | None:
        """The panel of the error, once there was one."""
        return self._error

    def _show_chips(self, texts: tuple[str, ...]) -> None:
        while len(self._chips) < len(texts):
            chip = Chip()
            chip.setParent(self)
            self._chips.append(chip)
        for at, chip in enumerate(self._chips):
            chip.setVisible(at < len(texts))
            if at < len(texts) and chip.text() != texts[at]:
                chip.setText(texts[at])

    def _show_error(self, text: str) -> None:
        if text and self._error is None:
            self._error = ErrorPanel(self)
            self._error.retry.connect(lambda: self.retry_requested.emit(self.data.id))
        if self._error is not None:
            self._error.set_text(text)
            self._error.setVisible(bool(text))

    # Geometry

    def arrange(self, width: int) -> int:
        """Lay out at `width` pixels; the height this needs. `place` moves the parts there.

        Apart, because pixels can be scrolled only while no moved part waits to be painted.
        """
        return self._arrange_user(width) if self.data.role == "user" else self._arrange_answer(width)

    def _arrange_user(self, width: int) -> int:
        limit = max(1, round(width * _BUBBLE_SHARE) - 2 * theme.S4)
        self.body.set_text_width(limit)
        if self.body.is_loaded() and len(self.data.text) < _LONG:
            ideal = min(limit, self.body.ideal_width() + 1)
            self.body.set_text_width(ideal)
            limit = ideal
        height = self._body_height(limit)
        outer = limit + 2 * theme.S4
        self._bubble = QRect(width - outer, 0, outer, height + 2 * theme.S4)
        self._put(self.body, QRect(self._bubble.left() + theme.S4, theme.S4, limit, height))
        size = self._copy.sizeHint()
        x = max(0, self._bubble.left() - size.width() - theme.S2)
        self._put(self._copy, QRect(QPoint(x, self._bubble.center().y() - size.height() // 2), size))
        return self._bubble.height()

    def _arrange_answer(self, width: int) -> int:
        self._bubble = QRect()
        y = self._arrange_header(width)
        if self.data.text:
            self.body.set_text_width(width)
            height = self._body_height(width)
            self._put(self.body, QRect(0, y, width, height))
            y += height + theme.S2
        if self._error is not None and self.data.state == "error":
            height = self._error.arrange(width)
            self._put(self._error, QRect(0, y, width, height))
            y += height + theme.S2
        if self.data.state == "error" and not self._footer.text():
            self._copy.hide()
            return y - theme.S2
        self._arrange_footer(width, y)
        return y + _FOOTER

    def _arrange_header(self, width: int) -> int:
        """The name gives way to the reason for it; facts that do not fit are left out."""
        x = 0
        room = self.why_chip.sizeHint().width() + theme.S2 if not self.why_chip.isHidden() else 0
        if not self._name.isHidden():
            wanted = min(self._name.sizeHint().width(), max(_NAME_LEAST, width - room))
            self._put(self._name, QRect(0, 0, min(wanted, width), _HEADER))
            x = wanted + theme.S2
        if room:
            self._put(self.why_chip, QRect(x, 0, max(0, min(room - theme.S2, width - x)), _HEADER))
            x += room
        for chip in (one for one in self._chips if not one.isHidden()):
            wanted = chip.sizeHint().width()
            self._put(chip, QRect(x, 0, wanted if x + wanted <= width else 0, _HEADER))
            x += wanted + theme.S2
        return _HEADER + theme.S2 if x else 0

    def _arrange_footer(self, width: int, y: int) -> None:
        links = [link for link in (self._retry, self._copy) if not link.isHidden()]
        taken = sum(link.sizeHint().width() + theme.S1 for link in links)
        text = min(self._footer.sizeHint().width(), max(0, width - taken - theme.S2))
        self._put(self._footer, QRect(0, y, text, _FOOTER))
        x = text + theme.S2 if self._footer.text() else -theme.S1
        for link in links:
            self._put(link, QRect(QPoint(x, y), link.sizeHint()))
            x += link.sizeHint().width() + theme.S1

    def _put(self, widget: QWidget, area: QRect) -> None:
        self._areas[widget] = area

    def place(self) -> None:
        """Move the parts to where `arrange` wants them."""
        for widget, area in self._areas.items():
            if widget.geometry() != area:
                widget.setGeometry(area)
        self._areas.clear()

    def _body_height(self, width: int) -> int:
        height = self.body.text_height()
        if not self.body.is_loaded():
            height = max(height, estimate_text(self.data.text, width))
        return height

    # Events

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._bubble.isEmpty():
            radius = theme.CARD_RADIUS
            rounded(QPainter(self), self._bubble, radius, theme.current().accent_tint)

    def enterEvent(self, event: QEnterEvent) -> None:
        self._reveal(True)

    def leaveEvent(self, event: QEvent) -> None:
        self._copied = False
        self.retranslate()
        self._reveal(False)

    def _reveal(self, shown: bool) -> None:
        self._copy.reveal(shown)
        self._retry.reveal(True)

    def _copy_message(self) -> None:
        QGuiApplication.clipboard().setText(self.data.text)
        self._copied = True
        self.retranslate()
        size = self._copy.sizeHint()
        self._copy.resize(size)


def estimate_text(text: str, width: int) -> int:
    """Pixels that `text` will take at `width`, roughly."""
    if not text:
        return 0
    per_line = max(10, width // _average_advance())
    return LINE * (text.count("\n") + ceil(len(text) / per_line))


def estimate(data: MessageData, width: int) -> int:
    """Pixels that a message will take at `width`, roughly."""
    if data.role == "user":
        return estimate_text(data.text, round(width * _BUBBLE_SHARE)) + 2 * theme.S4
    extra = _HEADER + _FOOTER + 2 * theme.S2 + (80 if data.error else 0)
    return estimate_text(data.text, width) + extra


_advance = 0


def _average_advance() -> int:
    global _advance
    if not _advance:
        _advance = max(1, QFontMetrics(theme.font()).averageCharWidth())
    return _advance
