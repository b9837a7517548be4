"""Small shared widgets in the theme's colours: text, chips, cards, buttons, bars, headers. UI thread only."""

from collections.abc import Iterable
from typing import Literal

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from laya_desktop.ui import icons, theme
from laya_desktop.ui.style import rounded

Tone = Literal["text", "muted", "accent", "danger"]
ChipTone = Literal["plain", "accent", "ok", "warn", "danger"]

_ROLES = {
    "text": QPalette.ColorRole.WindowText,
    "muted": QPalette.ColorRole.PlaceholderText,
    "accent": QPalette.ColorRole.Link,
    "danger": QPalette.ColorRole.BrightText,
}


class Retranslating:
    """Mixin before a QWidget: calls `retranslate()` whenever the language changes."""

    def retranslate(self) -> None:
        raise NotImplementedError

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)  # type: ignore[misc]


class Text(QLabel):
    """Plain text in one of the theme's tones and sizes. Never interprets markup."""

    def __init__(
        self,
        text: str = "",
        *,
        tone: Tone = "text",
        size: int = theme.BODY,
        bold: bool = False,
        wrap: bool = False,
        selectable: bool = False,
    ) -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setFont(theme.font(size, bold=bold))
        self.setForegroundRole(_ROLES[tone])
        self.setWordWrap(wrap)
        if selectable:
            self.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )


class ElidedText(QWidget):
    """One line that ends in an ellipsis where there is no room; the whole text is the tooltip then."""

    def __init__(
        self, text: str = "", *, tone: Tone = "text", size: int = theme.BODY, bold: bool = False
    ) -> None:
        super().__init__()
        self._text = text
        self.setFont(theme.font(size, bold=bold))
        self.setForegroundRole(_ROLES[tone])
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def text(self) -> str:
        return self._text

    def setText(self, text: str) -> None:
        self._text = text
        self.setAccessibleName(text)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self._text) + 2, metrics.height() + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(24, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        shown = self.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, shown)
        self.setToolTip(self._text if shown != self._text else "")


def chip_colours(tone: ChipTone) -> tuple[str, str | None, str | None]:
    """Text, ground and outline of a chip."""
    tokens = theme.current()
    if tone == "plain":
        return tokens.muted, None, tokens.line
    return getattr(tokens, tone), getattr(tokens, f"{tone}_tint"), None


def chip_width(text: str, metrics: QFontMetrics) -> int:
    return metrics.horizontalAdvance(text) + 2 * 10 + 2


def paint_chip(painter: QPainter, rect: QRect, text: str, tone: ChipTone) -> None:
    """Draw a chip with the painter's font."""
    colour, ground, outline = chip_colours(tone)
    rounded(painter, rect, rect.height() / 2, ground, outline)
    painter.setPen(QColor(colour))
    shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, rect.width() - 16)
    painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, shown)


class Chip(QWidget):
    """A short fact in a pill."""

    def __init__(self, text: str = "", tone: ChipTone = "plain") -> None:
        super().__init__()
        self._text, self._tone = text, tone
        self.setFont(theme.font(theme.SMALL))
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(text)

    def text(self) -> str:
        return self._text

    def setText(self, text: str, tone: ChipTone | None = None) -> None:
        self._text = text
        self._tone = tone or self._tone
        self.setAccessibleName(text)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(chip_width(self._text, self.fontMetrics()), 24)

    def minimumSizeHint(self) -> QSize:
        return QSize(min(self.sizeHint().width(), 140), 24)

    def paintEvent(self, event: QPaintEvent) -> None:
        paint_chip(QPainter(self), self.rect(), self._text, self._tone)


class Dot(QWidget):
    """A small disc in the colour of a token."""

    def __init__(self, token: str = "muted", size: int = 8) -> None:
        super().__init__()
        self._token = token
        self.setFixedSize(size, size)

    def set_token(self, token: str) -> None:
        self._token = token
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        rounded(QPainter(self), self.rect(), self.width() / 2, theme.current().color(self._token))


class Panel(QWidget):
    """A plain area in one of the ground colours, with hairlines on the sides named."""

    def __init__(
        self, ground: str = "panel", lines: Iterable[Literal["right", "bottom", "top"]] = ()
    ) -> None:
        super().__init__()
        self._ground, self._lines = ground, tuple(lines)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme.current()
        painter = QPainter(self)
        painter.fillRect(event.rect(), tokens.color(self._ground))
        line = tokens.color("line")
        for side in self._lines:
            if side == "right":
                painter.fillRect(self.width() - 1, 0, 1, self.height(), line)
            else:
                painter.fillRect(0, 0 if side == "top" else self.height() - 1, self.width(), 1, line)


class Card(QFrame):
    """A rounded panel with a vertical layout."""

    def __init__(self, ground: str = "panel", outline: str | None = "line") -> None:
        super().__init__()
        self._ground, self._outline = ground, outline
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(theme.S4, theme.S3, theme.S4, theme.S3)
        self.body.setSpacing(theme.S2)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = theme.current()
        outline = tokens.color(self._outline) if self._outline else None
        rounded(QPainter(self), self.rect(), theme.CARD_RADIUS, tokens.color(self._ground), outline)


def button(kind: Literal["", "primary", "danger", "quiet", "link"] = "") -> QPushButton:
    """A push button of one of our kinds."""
    result = QPushButton()
    if kind:
        result.setProperty("kind", kind)
    result.setFont(theme.font(13))
    result.setAutoDefault(False)
    return result


class IconButton(QPushButton):
    """A square button that shows one of our icons; it needs an accessible name."""

    def __init__(self, name: str, *, kind: str = "quiet", token: str = "muted", size: int = 32) -> None:
        super().__init__()
        self._name, self._token = name, token
        self.setProperty("kind", kind)
        self.setFixedSize(size, size)
        self.setAutoDefault(False)

    def describe(self, text: str) -> None:
        """Set the accessible name and the tooltip."""
        self.setAccessibleName(text)
        self.setToolTip(text)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        tokens = theme.current()
        token = self._token if self.isEnabled() else "disabled"
        side = 16
        area = QRectF(QPointF((self.width() - side) / 2, (self.height() - side) / 2), QSize(side, side))
        icons.paint(QPainter(self), self._name, getattr(tokens, token), area)


def paint_bar(painter: QPainter, rect: QRect, share: float, token: str = "accent") -> None:
    """A thin horizontal bar, filled up to `share` (0…1)."""
    tokens = theme.current()
    radius = rect.height() / 2
    rounded(painter, rect, radius, theme.mix(tokens.line, tokens.control_border, 0.2))
    filled = round(rect.width() * min(1.0, max(0.0, share)))
    if filled > 0:
        rounded(
            painter,
            QRect(rect.x(), rect.y(), max(filled, rect.height()), rect.height()),
            radius,
            tokens.color(token),
        )


class Bar(QWidget):
    """A thin bar with an optional hatched part at its end."""

    def __init__(self, height: int = 6) -> None:
        super().__init__()
        self._share = self._reserved = 0.0
        self._token = "accent"
        self.setFixedHeight(height)

    def set_share(self, share: float, reserved: float = 0.0, token: str = "accent") -> None:
        if (share, reserved, token) != (self._share, self._reserved, self._token):
            self._share, self._reserved, self._token = share, reserved, token
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        paint_bar(painter, self.rect(), self._share, self._token)
        if self._reserved <= 0:
            return
        start = round(self.width() * (1 - min(1.0, self._reserved)))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.current().color("muted"), 1.2))
        painter.setClipRect(start, 0, self.width() - start, self.height())
        for x in range(start - self.height(), self.width(), 4):
            painter.drawLine(x, self.height(), x + self.height(), 0)


class PageHeader(Panel):
    """The strip at the top of a page: title and facts at the left, actions at the right."""

    HEIGHT = 52

    def __init__(self) -> None:
        super().__init__("panel", ("bottom",))
        self.setFixedHeight(self.HEIGHT)
        self.title = ElidedText(bold=True)
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.S5, 0, theme.S5, 0)
        row.setSpacing(theme.S3)
        row.addWidget(self.title)
        self.facts = QHBoxLayout()
        self.facts.setSpacing(theme.S2)
        row.addLayout(self.facts)
        row.addStretch(1)
        self.actions = QHBoxLayout()
        self.actions.setSpacing(theme.S2)
        row.addLayout(self.actions)
