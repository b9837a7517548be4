"""The one proxy style: Fusion with our radii, flat controls, a visible focus ring and slim scroll bars.

UI thread only. It reads `theme.current()` while painting, so that a theme switch needs no new style.
Buttons choose their look by the dynamic property `kind`: `primary`, `danger`, `quiet` or none.
"""

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPalette, QPen
from PySide6.QtWidgets import (
    QProxyStyle,
    QStyle,
    QStyleOption,
    QStyleOptionButton,
    QStyleOptionComplex,
    QStyleOptionSlider,
    QWidget,
)

from laya_desktop.ui import theme

_PE = QStyle.PrimitiveElement
_CE = QStyle.ControlElement
_State = QStyle.StateFlag


def rounded(
    painter: QPainter,
    rect: QRect | QRectF,
    radius: float,
    fill: QColor | str | None = None,
    border: QColor | str | None = None,
    width: float = 1,
) -> None:
    """Draw a crisp rounded rectangle inside `rect`."""
    inset = width / 2 if border is not None else 0
    area = QRectF(rect).adjusted(inset, inset, -inset, -inset)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(border), width) if border is not None else Qt.PenStyle.NoPen)
    painter.setBrush(QColor(fill) if fill is not None else Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(area, radius, radius)
    painter.restore()


def focus_ring(painter: QPainter, rect: QRect, radius: float = theme.RADIUS) -> None:
    """Draw the focus ring just inside `rect`."""
    rounded(painter, rect, radius, border=theme.current().focus, width=2)


def shows_focus(widget: QWidget) -> bool:
    """Whether to draw a focus ring: the widget has the focus and the user works with the keyboard."""
    return widget.hasFocus() and widget.window().testAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange)


class LayaStyle(QProxyStyle):
    def __init__(self) -> None:
        super().__init__("Fusion")

    def drawPrimitive(
        self,
        element: QStyle.PrimitiveElement,
        option: QStyleOption,
        painter: QPainter,
        widget: QWidget | None = None,
    ) -> None:
        if element in (_PE.PE_PanelButtonCommand, _PE.PE_PanelButtonTool):
            _draw_button(option, painter, widget)
        elif element == _PE.PE_FrameFocusRect:
            if _keyboard_focus(option) and (widget is None or widget.property("kind") is None):
                focus_ring(painter, option.rect)
        elif element == _PE.PE_PanelLineEdit:
            _draw_field(option, painter)
        elif element == _PE.PE_FrameLineEdit:
            pass
        elif element in (_PE.PE_PanelMenu, _PE.PE_PanelTipLabel):
            tokens = theme.current()
            painter.fillRect(option.rect, QColor(tokens.panel))
            rounded(painter, option.rect, 0, border=tokens.line)
        elif element == _PE.PE_FrameMenu:
            pass
        elif element == _PE.PE_PanelScrollAreaCorner:
            painter.fillRect(option.rect, option.palette.color(QPalette.ColorRole.Window))
        else:
            super().drawPrimitive(element, option, painter, widget)

    def drawControl(
        self,
        element: QStyle.ControlElement,
        option: QStyleOption,
        painter: QPainter,
        widget: QWidget | None = None,
    ) -> None:
        if element == _CE.CE_PushButtonLabel and isinstance(option, QStyleOptionButton):
            option.palette.setColor(QPalette.ColorRole.ButtonText, _button_text(option, widget))
        super().drawControl(element, option, painter, widget)

    def drawComplexControl(
        self,
        control: QStyle.ComplexControl,
        option: QStyleOptionComplex,
        painter: QPainter,
        widget: QWidget | None = None,
    ) -> None:
        if control == QStyle.ComplexControl.CC_ScrollBar and isinstance(option, QStyleOptionSlider):
            self._draw_scroll_bar(option, painter, widget)
        elif control == QStyle.ComplexControl.CC_ComboBox:
            _draw_combo(option, painter)
        else:
            super().drawComplexControl(control, option, painter, widget)

    def subControlRect(
        self,
        control: QStyle.ComplexControl,
        option: QStyleOptionComplex,
        sub: QStyle.SubControl,
        widget: QWidget | None = None,
    ) -> QRect:
        if control == QStyle.ComplexControl.CC_ScrollBar and isinstance(option, QStyleOptionSlider):
            slider = _scroll_bar_rect(option, sub)
            if slider is not None:
                return slider
        result = super().subControlRect(control, option, sub, widget)
        if control == QStyle.ComplexControl.CC_ComboBox and sub == QStyle.SubControl.SC_ComboBoxEditField:
            return result.adjusted(theme.S2, 0, -theme.S2, 0)
        return result

    def subElementRect(
        self, element: QStyle.SubElement, option: QStyleOption, widget: QWidget | None = None
    ) -> QRect:
        result = super().subElementRect(element, option, widget)
        if element == QStyle.SubElement.SE_LineEditContents:
            return result.adjusted(theme.S2, 0, -theme.S2, 0)
        return result

    def pixelMetric(
        self, metric: QStyle.PixelMetric, option: QStyleOption | None = None, widget: QWidget | None = None
    ) -> int:
        fixed = _METRICS.get(metric)
        return fixed if fixed is not None else super().pixelMetric(metric, option, widget)

    def styleHint(
        self,
        hint: QStyle.StyleHint,
        option: QStyleOption | None = None,
        widget: QWidget | None = None,
        returnData: object = None,  # noqa: N803 - Qt's name
    ) -> int:
        fixed = _HINTS.get(hint)
        return fixed if fixed is not None else super().styleHint(hint, option, widget, returnData)

    def sizeFromContents(
        self, kind: QStyle.ContentsType, option: QStyleOption, size: QSize, widget: QWidget | None = None
    ) -> QSize:
        if kind == QStyle.ContentsType.CT_PushButton:
            return QSize(size.width() + 2 * theme.S3 + 2, max(32, size.height() + theme.S3))
        result = super().sizeFromContents(kind, option, size, widget)
        if kind in (QStyle.ContentsType.CT_LineEdit, QStyle.ContentsType.CT_ComboBox):
            result = QSize(result.width() + 2 * theme.S2, max(34, result.height()))
        elif kind == QStyle.ContentsType.CT_MenuItem and result.height() > theme.S3:
            result.setHeight(max(28, result.height()))
        return result

    def _draw_scroll_bar(self, option: QStyleOptionSlider, painter: QPainter, widget: QWidget | None) -> None:
        sub = QStyle.SubControl
        handle = _scroll_bar_rect(option, sub.SC_ScrollBarSlider)
        if handle is None or option.maximum <= option.minimum:
            return
        tokens = theme.current()
        active = bool(option.activeSubControls & sub.SC_ScrollBarSlider) and bool(
            option.state & (_State.State_MouseOver | _State.State_Sunken)
        )
        colour = (
            QColor(tokens.control_border)
            if active
            else theme.mix(tokens.background, tokens.control_border, 0.55)
        )
        inset = (
            handle.adjusted(2, 1, -2, -1)
            if option.orientation == Qt.Orientation.Vertical
            else handle.adjusted(1, 2, -1, -2)
        )
        rounded(painter, inset, min(inset.width(), inset.height()) / 2, colour)


_METRICS = {
    QStyle.PixelMetric.PM_ScrollBarExtent: 10,
    QStyle.PixelMetric.PM_ScrollBarSliderMin: 32,
    QStyle.PixelMetric.PM_ButtonShiftHorizontal: 0,
    QStyle.PixelMetric.PM_ButtonShiftVertical: 0,
    QStyle.PixelMetric.PM_MenuPanelWidth: 1,
    QStyle.PixelMetric.PM_MenuVMargin: theme.S1,
    QStyle.PixelMetric.PM_MenuHMargin: theme.S1,
    QStyle.PixelMetric.PM_ToolTipLabelFrameWidth: theme.S1,
    QStyle.PixelMetric.PM_ButtonIconSize: 16,
    QStyle.PixelMetric.PM_SmallIconSize: 16,
}

_HINTS = {
    QStyle.StyleHint.SH_ComboBox_Popup: 0,
    QStyle.StyleHint.SH_EtchDisabledText: 0,
    QStyle.StyleHint.SH_ScrollBar_ContextMenu: 0,
    QStyle.StyleHint.SH_ToolTip_WakeUpDelay: 400,
}


def _keyboard_focus(option: QStyleOption) -> bool:
    """A ring after Tab, not after a click."""
    return bool(option.state & _State.State_HasFocus) and bool(
        option.state & _State.State_KeyboardFocusChange
    )


def _kind(widget: QWidget | None) -> str:
    return str(widget.property("kind") or "") if widget is not None else ""


def _button_text(option: QStyleOption, widget: QWidget | None) -> QColor:
    tokens = theme.current()
    if not option.state & _State.State_Enabled:
        return QColor(tokens.disabled)
    return QColor(
        {"primary": tokens.on_accent, "danger": tokens.danger, "link": tokens.accent}.get(
            _kind(widget), tokens.text
        )
    )


def _draw_button(option: QStyleOption, painter: QPainter, widget: QWidget | None) -> None:
    tokens = theme.current()
    kind = _kind(widget)
    enabled = bool(option.state & _State.State_Enabled)
    down = bool(option.state & (_State.State_Sunken | _State.State_On))
    hover = enabled and bool(option.state & _State.State_MouseOver)
    shade = 0.12 if down else 0.06 if hover else 0.0
    fill: QColor | None
    border: QColor | str | None
    if kind == "primary" and enabled:
        fill, border = theme.mix(tokens.accent, tokens.text, shade * 1.5), None
    elif kind in ("quiet", "link"):
        fill, border = (theme.mix(tokens.panel, tokens.text, shade) if shade else None), None
    else:
        fill = theme.mix(tokens.panel, tokens.text, shade)
        border = tokens.control_border if enabled else tokens.line
    rounded(painter, option.rect, theme.RADIUS, fill, border)
    if _keyboard_focus(option):
        ring = QColor(tokens.on_accent) if kind == "primary" else QColor(tokens.focus)
        if kind == "primary":
            rounded(painter, option.rect.adjusted(2, 2, -2, -2), theme.RADIUS - 2, border=ring, width=2)
        else:
            rounded(painter, option.rect, theme.RADIUS, border=ring, width=2)


def _draw_field(option: QStyleOption, painter: QPainter) -> None:
    tokens = theme.current()
    focused = bool(option.state & _State.State_HasFocus)
    rounded(
        painter,
        option.rect,
        theme.RADIUS,
        tokens.panel,
        tokens.focus if focused else tokens.control_border,
        2 if focused else 1,
    )


def _draw_combo(option: QStyleOptionComplex, painter: QPainter) -> None:
    tokens = theme.current()
    hover = bool(option.state & _State.State_MouseOver)
    rounded(
        painter,
        option.rect,
        theme.RADIUS,
        theme.mix(tokens.panel, tokens.text, 0.06 if hover else 0),
        tokens.focus if _keyboard_focus(option) else tokens.control_border,
        2 if _keyboard_focus(option) else 1,
    )
    chevron(painter, option.rect.right() - 18, option.rect.center().y(), QColor(tokens.muted))


def chevron(painter: QPainter, x: float, y: float, colour: QColor) -> None:
    """A small downward arrow whose middle is at `x` + 4, `y`."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(
        QPen(colour, 1.5, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)
    )
    painter.translate(x, y)
    painter.drawLine(0, -2, 4, 2)
    painter.drawLine(4, 2, 8, -2)
    painter.restore()


def _scroll_bar_rect(option: QStyleOptionSlider, sub: QStyle.SubControl) -> QRect | None:
    """Without arrow buttons: the groove is the whole bar."""
    subs = QStyle.SubControl
    whole = option.rect
    if sub in (subs.SC_ScrollBarAddLine, subs.SC_ScrollBarSubLine):
        return QRect()
    if sub == subs.SC_ScrollBarGroove:
        return whole
    vertical = option.orientation == Qt.Orientation.Vertical
    length = whole.height() if vertical else whole.width()
    span = option.maximum - option.minimum
    size = length if span <= 0 else max(32, length * option.pageStep // max(1, span + option.pageStep))
    size = min(size, length)
    start = QStyle.sliderPositionFromValue(
        option.minimum, option.maximum, option.sliderPosition, length - size, option.upsideDown
    )
    pieces = {
        subs.SC_ScrollBarSlider: (start, size),
        subs.SC_ScrollBarSubPage: (0, start),
        subs.SC_ScrollBarAddPage: (start + size, length - start - size),
    }
    if sub not in pieces:
        return None
    at, extent = pieces[sub]
    if vertical:
        return QRect(whole.x(), whole.y() + at, whole.width(), extent)
    return QRect(whole.x() + at, whole.y(), extent, whole.height())
