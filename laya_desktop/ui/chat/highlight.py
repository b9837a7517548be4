"""Colours for code, in steps small enough to fit between two frames. UI thread only."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from PySide6.QtGui import QColor, QTextBlock, QTextCharFormat, QTextLayout

from laya_desktop.ui import theme
from laya_desktop.ui.chat.document import LIMIT, AnswerDocument
from laya_desktop.ui.chat.formats import CodeLine, Prop

_TOKENS_PER_STEP = 40
_LINES_PER_STEP = 20
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_lexers = ThreadPoolExecutor(1, thread_name_prefix="lexers")  # loading one takes up to 50 ms


def highlight(document: AnswerDocument, position: int) -> Iterator[bool]:
    """Colour the code that begins at `position` in steps of well under a millisecond.

    Yields whether there is more to do at once; False means that it waits for its lexer to be loaded.
    """
    first = document.findBlock(position)
    language = first.blockFormat().property(Prop.LANGUAGE)
    if not language:
        return
    lexer = _lexers.submit(_lexer, str(language))
    while not lexer.done():
        yield False
    found = lexer.result()
    if found is None:
        return
    lines, text = _lines(document.findBlock(position))
    if len(text) > LIMIT:
        return
    yield True
    colours = _colours()
    at_line, begin = 0, 0
    ranges: list[QTextLayout.FormatRange] = []
    for count, (start, kind, value) in enumerate(found.get_tokens_unprocessed(text)):
        if count % _TOKENS_PER_STEP == 0:
            yield True
        made = _look_up(colours, kind)
        at, end = start, start + len(value)
        while made is not None and at < end and at_line < len(lines):
            line, length = lines[at_line]
            if at >= begin + length:
                _colour(document, line, ranges)
                begin += length
                at_line, ranges = at_line + 1, []
                if at_line % _LINES_PER_STEP == 0:
                    yield True
                continue
            one = QTextLayout.FormatRange()
            one.start = at - begin
            one.length = min(end, begin + length) - at
            one.format = made
            ranges.append(one)
            at = begin + length
    if at_line < len(lines):
        _colour(document, lines[at_line][0], ranges)


def _lines(block: QTextBlock) -> tuple[list[tuple[QTextBlock, int]], str]:
    """The paragraphs of the code with their lengths (newlines count where they are in the text)."""
    lines: list[tuple[QTextBlock, int]] = []
    parts: list[str] = []
    size = 0
    while size <= LIMIT:
        # Qt counts UTF-16 units, Python characters.
        text = _ASTRAL.sub("\ufffd\ufffd", block.text())
        following = block.next()
        made = following.blockFormat()
        goes_on = following.isValid() and made.property(Prop.CODE) == CodeLine.OTHER
        if not (goes_on and made.hasProperty(Prop.SEAM)):
            text += "\n"
        lines.append((block, len(text)))
        parts.append(text)
        size += len(text)
        if not goes_on:
            break
        block = following
    return lines, "".join(parts)


def _colour(document: AnswerDocument, block: QTextBlock, ranges: list[QTextLayout.FormatRange]) -> None:
    if not block.isValid():
        return
    layout = block.layout()
    if ranges or layout.formats():
        layout.setFormats(ranges)
        document.markContentsDirty(block.position(), block.length())


def _colours() -> dict[object, QTextCharFormat]:
    from pygments.token import Token

    tokens = theme.current()
    table = {
        Token.Keyword: tokens.code_keyword,
        Token.Operator.Word: tokens.code_keyword,
        Token.Name.Tag: tokens.code_keyword,
        Token.Keyword.Type: tokens.code_name,
        Token.Name.Builtin: tokens.code_name,
        Token.Name.Function: tokens.code_name,
        Token.Name.Class: tokens.code_name,
        Token.Name.Decorator: tokens.code_name,
        Token.Name.Attribute: tokens.code_name,
        Token.Literal.String: tokens.code_string,
        Token.Generic.Inserted: tokens.code_string,
        Token.Literal.Number: tokens.code_number,
        Token.Keyword.Constant: tokens.code_number,
        Token.Comment: tokens.code_comment,
        Token.Generic.Deleted: tokens.danger,
    }
    result: dict[object, QTextCharFormat] = {}
    for kind, colour in table.items():
        made = QTextCharFormat()
        made.setForeground(QColor(colour))
        result[kind] = made
    return result


def _look_up(colours: dict[object, QTextCharFormat], kind: object) -> QTextCharFormat | None:
    while kind is not None:
        made = colours.get(kind)
        if made is not None:
            return made
        kind = getattr(kind, "parent", None)
    return None


def _lexer(language: str) -> Any:
    """A Pygments lexer, or None. Runs in a thread of its own."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
