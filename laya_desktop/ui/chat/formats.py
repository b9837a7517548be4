"""The look of text in a document: block and character formats from the theme's tokens. UI thread only."""

from enum import IntEnum

from PySide6.QtGui import QColor, QFont, QFontMetricsF, QTextBlockFormat, QTextCharFormat, QTextFormat

from laya_desktop.ui import theme
from laya_desktop.ui.chat.blocks import Block, Kind
from laya_desktop.ui.chat.inline import Span, Style

_USER = QTextFormat.Property.UserProperty.value

INDENT = theme.S5 + theme.S1
"""Pixels per level of a list."""
MARKER_GAP = theme.S1 + 2
"""Pixels between a list marker and its text."""
QUOTE_INDENT = theme.S4
"""Pixels per level of a quote."""
CODE_HEADER = 28
"""Height of the strip above code, in pixels."""
CODE_PAD = theme.S2
"""Between the code and the edges of its card, above and below."""
TABLE_PAD = theme.S3
"""Below a table."""
_LINE_SPACING = 1.27


class Prop(IntEnum):
    """What our painting, copying and recolouring read from block formats, and `STYLE` from text."""

    MARKER = _USER + 1
    QUOTE = _USER + 2
    CODE = _USER + 3  # a `CodeLine`
    LANGUAGE = _USER + 4
    RULE = _USER + 5
    SEAM = _USER + 6  # the text goes on from the block before; 2: there was a line break
    STYLE = _USER + 7
    SPACER = _USER + 8
    CELL = _USER + 9


class CodeLine(IntEnum):
    FIRST = 1
    OTHER = 2


class Formats:
    """Makes formats and remembers them. Make a new one when the theme changes."""

    def __init__(self) -> None:
        self._tokens = theme.current()
        self._chars: dict[tuple[int, Kind, int], QTextCharFormat] = {}
        self._mono = theme.mono()
        self._heights: dict[str, int] = {}

    def char(self, span: Span, block: Block) -> QTextCharFormat:
        """The format of one run of text inside `block`."""
        key = (span.style | (64 if span.href else 0), block.kind, block.level)
        made = self._chars.get(key)
        if made is None:
            made = self._chars[key] = self._make_char(*key)
        if span.href:
            made = QTextCharFormat(made)
            made.setAnchorHref(span.href)
        return made

    def _make_char(self, style: int, kind: Kind, level: int) -> QTextCharFormat:
        result = QTextCharFormat()
        if kind is Kind.HEADING:
            result.setFont(self.heading(level))
        elif kind is Kind.CODE:
            result.setFont(self._mono)
        if style & Style.BOLD:
            result.setFontWeight(QFont.Weight.Bold)
        if style & Style.ITALIC:
            result.setFontItalic(True)
        if style & Style.STRIKE:
            result.setFontStrikeOut(True)
        if style & Style.CODE:
            result.setFontFamilies(self._mono.families())
            result.setFontFixedPitch(True)
            if kind is not Kind.HEADING:
                result.setProperty(QTextFormat.Property.FontPixelSize, self._mono.pixelSize())
        if style & 64:
            result.setAnchor(True)
            result.setFontUnderline(True)
        if style & (Style.CODE | 64):
            result.setProperty(Prop.STYLE, style)
            self.colour(result, style)
        return result

    def colour(self, result: QTextCharFormat, style: int) -> None:
        """Put today's colours into a format that has some."""
        if style & 64:
            result.setForeground(QColor(self._tokens.accent))
        if style & Style.CODE:
            result.setBackground(theme.mix(self._tokens.code_background, self._tokens.line, 0.6))

    def block(self, block: Block, before: Block | None) -> QTextBlockFormat:
        """The format of a block's first paragraph, given the block above it."""
        result = QTextBlockFormat()
        left = block.quote * QUOTE_INDENT + block.depth * INDENT
        result.setTopMargin(gap(block, before))
        if block.quote:
            result.setProperty(Prop.QUOTE, block.quote)
        if block.marker:
            result.setProperty(Prop.MARKER, block.marker)
            wide = QFontMetricsF(theme.font()).horizontalAdvance(block.marker) + MARKER_GAP - INDENT
            if wide > 0:
                result.setTextIndent(wide)
        height = self.line_height(theme.font())
        if block.kind is Kind.CODE:
            height = self.line_height(self._mono)
            result.setProperty(Prop.CODE, int(CodeLine.FIRST))
            if block.language:
                result.setProperty(Prop.LANGUAGE, block.language)
            result.setRightMargin(theme.S3)
            result.setTopMargin(result.topMargin() + CODE_HEADER + CODE_PAD)
            left += theme.S3
        elif block.kind is Kind.HEADING:
            result.setHeadingLevel(block.level)
            height = self.line_height(self.heading(block.level))
        elif block.kind is Kind.RULE:
            result.setProperty(Prop.RULE, True)
            height = 1
        result.setLeftMargin(left)
        set_line_height(result, height)
        return result

    def heading(self, level: int) -> QFont:
        return theme.font(theme.TITLE if level <= 2 else theme.BODY, bold=True)

    def line_height(self, font: QFont) -> int:
        """Pixels between the lines of a text in `font`, whatever other scripts it falls back to."""
        key = font.key()
        if key not in self._heights:
            self._heights[key] = round(QFontMetricsF(font).height() * _LINE_SPACING)
        return self._heights[key]

    def tab_width(self) -> float:
        return 4 * QFontMetricsF(self._mono).horizontalAdvance(" ")


def following(first: QTextBlockFormat) -> QTextBlockFormat:
    """The format of further lines of the same block: no gap, no marker."""
    result = QTextBlockFormat(first)
    result.setTopMargin(0)
    result.setTextIndent(0)
    for prop in (Prop.MARKER, Prop.LANGUAGE, Prop.SEAM):
        result.clearProperty(prop)
    if first.hasProperty(Prop.CODE):
        result.setProperty(Prop.CODE, int(CodeLine.OTHER))
    return result


def spacer() -> QTextBlockFormat:
    """The format of the empty block that Qt wants around tables, which nobody shall see."""
    result = QTextBlockFormat()
    set_line_height(result, 1)
    result.setProperty(Prop.SPACER, True)
    return result


def set_line_height(made: QTextBlockFormat, pixels: int) -> None:
    """Put lines `pixels` apart. Not a share of the font's height: a fallback font would move the lines."""
    made.setLineHeight(float(pixels), QTextBlockFormat.LineHeightTypes.FixedHeight.value)


def gap(block: Block, before: Block | None) -> int:
    """Pixels between two blocks; a card of code above counts its padding in."""
    if before is None:
        return 0
    pad = CODE_PAD if before.kind is Kind.CODE else 0
    if block.kind is Kind.HEADING:
        return pad + (theme.S4 if block.level <= 2 else theme.S3)
    if block.kind in (Kind.CODE, Kind.TABLE, Kind.RULE) or before.kind in (Kind.CODE, Kind.TABLE, Kind.RULE):
        return pad + theme.S3
    if block.marker and before.depth:
        return theme.S1
    if block.marker or before.kind is Kind.HEADING:
        return theme.S2 - 2
    return theme.S2
