"""Icons: our SVG files drawn in the theme's colours at the exact pixel size asked for. UI thread only."""

from functools import cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from laya_desktop.core.resources import resource
from laya_desktop.ui import theme

_SCALES = (1.0, 1.25, 1.5, 2.0, 3.0)


def pixmap(name: str, colour: str, size: int, ratio: float = 1.0) -> QPixmap:
    """The icon `name` in `colour` (hex), `size` logical pixels wide, sharp at the device pixel `ratio`."""
    return _render(name, colour, size, ratio)


def paint(painter: QPainter, name: str, colour: str, rect: QRectF) -> None:
    """Draw the icon into `rect` of a painter."""
    size = round(rect.width())
    ratio = painter.device().devicePixelRatioF()
    painter.drawPixmap(rect.topLeft(), pixmap(name, colour, size, ratio))


def icon(name: str, colour: str | None = None, size: int = 16) -> QIcon:
    """A QIcon in `colour` (text by default). It does not follow a theme switch: make it anew then."""
    tokens = theme.current()
    result = QIcon()
    for ratio in _SCALES:
        result.addPixmap(pixmap(name, colour or tokens.text, size, ratio))
        result.addPixmap(pixmap(name, tokens.disabled, size, ratio), QIcon.Mode.Disabled)
    return result


def logo() -> QIcon:
    """The app's icon."""
    result = QIcon()
    for size in (16, 32, 64, 128):
        result.addPixmap(pixmap("logo", "", size))
    return result


@cache
def _source(name: str) -> bytes:
    return resource(f"icons/{name}.svg").read_bytes()


@cache
def _render(name: str, colour: str, size: int, ratio: float) -> QPixmap:
    renderer = QSvgRenderer(QByteArray(_source(name).replace(b"currentColor", colour.encode())))
    pixels = max(1, round(size * ratio))
    result = QPixmap(pixels, pixels)
    result.fill(QColor(Qt.GlobalColor.transparent))
    painter = QPainter(result)
    renderer.render(painter, QRectF(0, 0, pixels, pixels))
    painter.end()
    result.setDevicePixelRatio(ratio)
    return result
