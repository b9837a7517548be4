"""Colours, sizes and fonts, and switching between light and dark. UI thread only.

Widgets take colours from `QPalette` where a role fits and from `current()` where they paint themselves;
nothing sets a global stylesheet, so that a switch costs one palette change.
"""

from dataclasses import dataclass, fields
from typing import Final, Literal

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QPalette
from PySide6.QtWidgets import QApplication

ThemeName = Literal["system", "light", "dark"]

# Spacing and radii in logical pixels.
S1: Final = 4
S2: Final = 8
S3: Final = 12
S4: Final = 16
S5: Final = 20
RADIUS: Final = 8
CARD_RADIUS: Final = 12

SMALL: Final = 12
BODY: Final = 14
TITLE: Final = 18

_CJK_FAMILIES = (
    "Noto Sans CJK SC",
    "PingFang SC",
    "Microsoft YaHei UI",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
)


@dataclass(frozen=True)
class Tokens:
    """One theme's colours as hex strings. `on_accent` is text on `accent`; a tint is a quiet ground for
    text of its own colour; `line` separates areas, `control_border` outlines what can be operated."""

    background: str
    panel: str
    rail: str
    line: str
    text: str
    muted: str
    accent: str
    accent_tint: str
    on_accent: str
    ok: str
    ok_tint: str
    warn: str
    warn_tint: str
    danger: str
    danger_tint: str
    control_border: str
    focus: str
    selection: str
    disabled: str
    code_background: str
    code_keyword: str
    code_string: str
    code_comment: str
    code_number: str
    code_name: str

    def color(self, name: str) -> QColor:
        """The token called `name` as a colour."""
        return QColor(getattr(self, name))


LIGHT: Final = Tokens(
    background="#f7f7f8",
    panel="#ffffff",
    rail="#f0f0f2",
    line="#e3e3e8",
    text="#1d1d22",
    muted="#6b6b76",
    accent="#3d5afe",
    accent_tint="#eef1ff",
    on_accent="#ffffff",
    ok="#187946",
    ok_tint="#e6f5ec",
    warn="#9a5b00",
    warn_tint="#fdf2dd",
    danger="#b3261e",
    danger_tint="#fdeae8",
    control_border="#868691",
    focus="#3d5afe",
    selection="#cbd5ff",
    disabled="#92929d",
    code_background="#f3f3f5",
    code_keyword="#7a3ec8",
    code_string="#176b40",
    code_comment="#6a6a75",
    code_number="#9a4a00",
    code_name="#0b5a8f",
)

DARK: Final = Tokens(
    background="#17171a",
    panel="#1f1f23",
    rail="#131316",
    line="#303036",
    text="#ececf0",
    muted="#9a9aa6",
    accent="#8c9eff",
    accent_tint="#262b4a",
    on_accent="#131633",
    ok="#5fcf95",
    ok_tint="#17352a",
    warn="#f0b95b",
    warn_tint="#3a2d14",
    danger="#ff8a80",
    danger_tint="#41201e",
    control_border="#74747f",
    focus="#8c9eff",
    selection="#3a4378",
    disabled="#6c6c77",
    code_background="#131316",
    code_keyword="#c9a2f5",
    code_string="#83d6a6",
    code_comment="#92929e",
    code_number="#f0b27a",
    code_name="#7cc4f5",
)


class _Notifier(QObject):
    changed = Signal()


class _State:
    tokens: Tokens = LIGHT
    theme: ThemeName = "system"
    system_is_dark: bool = False
    notifier: _Notifier | None = None


def current() -> Tokens:
    """The colours in effect."""
    return _State.tokens


def is_dark() -> bool:
    """Whether the dark colours are in effect."""
    return _State.tokens is DARK


def notifier() -> _Notifier:
    """The object whose signal `changed` follows every switch of the colours."""
    if _State.notifier is None:
        _State.notifier = _Notifier()
    return _State.notifier


def apply(app: QApplication, theme: ThemeName) -> None:
    """Show the app in `theme`. The first call also installs the style and the fonts."""
    if not app.property("laya_styled"):
        _install(app)
    _State.theme = theme
    hints = app.styleHints()
    schemes = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}
    hints.setColorScheme(schemes.get(theme, Qt.ColorScheme.Unknown))
    _use(app, DARK if theme == "dark" or (theme == "system" and _system_is_dark(app)) else LIGHT)


def font(size: int = BODY, *, bold: bool = False) -> QFont:
    """The system's font at one of the three sizes."""
    result = QFont(QApplication.font())
    result.setPixelSize(size)
    result.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
    return result


def mono(size: int = 13) -> QFont:
    """The system's fixed-pitch font."""
    result = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    result.setPixelSize(size)
    return result


def mix(first: str, second: str, share: float) -> QColor:
    """`first` with `share` (0…1) of `second`: for hover and pressed shades."""
    a, b = QColor(first), QColor(second)
    return QColor.fromRgbF(
        a.redF() * (1 - share) + b.redF() * share,
        a.greenF() * (1 - share) + b.greenF() * share,
        a.blueF() * (1 - share) + b.blueF() * share,
    )


def contrast(first: str, second: str) -> float:
    """WCAG contrast ratio of two colours, 1…21."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def palette(tokens: Tokens) -> QPalette:
    """The palette that carries these colours to Qt's own widgets.

    Two roles are borrowed, because they follow a switch by themselves: `PlaceholderText` is muted text and
    `BrightText` is danger.
    """
    role = QPalette.ColorRole
    result = QPalette()
    colours = {
        role.Window: tokens.background,
        role.WindowText: tokens.text,
        role.Base: tokens.panel,
        role.AlternateBase: tokens.background,
        role.Text: tokens.text,
        role.Button: tokens.panel,
        role.ButtonText: tokens.text,
        role.BrightText: tokens.danger,
        role.Highlight: tokens.selection,
        role.HighlightedText: tokens.text,
        role.Link: tokens.accent,
        role.LinkVisited: tokens.accent,
        role.PlaceholderText: tokens.muted,
        role.ToolTipBase: tokens.panel,
        role.ToolTipText: tokens.text,
        role.Accent: tokens.accent,
        role.Light: tokens.panel,
        role.Midlight: tokens.line,
        role.Mid: tokens.line,
        role.Dark: tokens.control_border,
        role.Shadow: tokens.rail,
    }
    for name, value in colours.items():
        result.setColor(name, QColor(value))
    for name in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, name, QColor(tokens.disabled))
    return result


def _install(app: QApplication) -> None:
    from laya_desktop.ui.style import LayaStyle

    app.setProperty("laya_styled", True)
    _State.system_is_dark = QPalette().color(QPalette.ColorRole.Window).lightness() < 128
    app.setStyle(LayaStyle())
    base = QFont(app.font())
    present = [family for family in _CJK_FAMILIES if QFontDatabase.hasFamily(family)]
    # The resolved family, because an alias such as "Sans Serif" would give way to the next in the list.
    base.setFamilies([QFontInfo(base).family(), *present])
    base.setPixelSize(BODY)
    app.setFont(base)
    app.styleHints().colorSchemeChanged.connect(lambda _scheme: _follow_system(app))


def _system_is_dark(app: QApplication) -> bool:
    scheme = app.styleHints().colorScheme()
    if scheme == Qt.ColorScheme.Unknown:
        return _State.system_is_dark
    return scheme == Qt.ColorScheme.Dark


def _follow_system(app: QApplication) -> None:
    if _State.theme == "system":
        _use(app, DARK if _system_is_dark(app) else LIGHT)


def _use(app: QApplication, tokens: Tokens) -> None:
    switched = tokens is not _State.tokens
    _State.tokens = tokens
    app.setPalette(palette(tokens))
    if switched:
        notifier().changed.emit()


def _luminance(value: str) -> float:
    color = QColor(value)
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (color.redF(), color.greenF(), color.blueF())
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def token_names() -> tuple[str, ...]:
    """All token names, in order."""
    return tuple(field.name for field in fields(Tokens))
