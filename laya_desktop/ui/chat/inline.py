"""Text inside one Markdown block: styled spans, and what is needed to cut or show it half-written. Pure."""

import re
from collections.abc import Callable, Iterable
from enum import IntFlag
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token


class Style(IntFlag):
    PLAIN = 0
    BOLD = 1
    ITALIC = 2
    STRIKE = 4
    CODE = 8


class Span(NamedTuple):
    """A run of text in one style; `href` is the address of a link or an image."""

    text: str
    style: int = 0
    href: str = ""


_MATH = re.compile(
    r"\\\((?:[^\\]|\\(?!\)))+?\\\)|\\\[(?:[^\\]|\\(?!\]))+?\\\]|\$\$(?:[^$\\]|\\.)+?\$\$"
    r"|\$(?![\s$])(?:[^$\\\n]|\\.)*?[^\s$\\]\$(?!\d)",
    re.DOTALL,
)
_ADDRESS = re.compile(r"https?://[^\s<>\"'`]*[^\s<>\"'`.,:;!?)\]}*_]")
_MARK = re.compile(r"\\.|`+|\*+|_+|~~+|\[|\](\([^()\s]*\))?|\s+|[\u2e80-\u9fff\uff00-\uffef]")
_OPEN_ADDRESS = re.compile(r"\([^()\s]*\Z")
_OPEN_TAIL = re.compile(r"(?:\*{1,3}|_{1,3}|~~?|`+|\[)\Z")


def _math(state: StateInline, silent: bool) -> bool:
    """Formulas keep their source, which Markdown's escapes and emphasis would damage."""
    if state.src[state.pos] not in "\\$":
        return False
    match = _MATH.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        state.push("math", "", 0).content = match.group()
    state.pos = match.end()
    return True


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("escape", "math", _math)
    return parser


MARKDOWN = _parser()
"""The one parser. It keeps no state between calls; raw HTML is text to it."""

_TOGGLES = {
    "strong_open": Style.BOLD,
    "strong_close": Style.BOLD,
    "em_open": Style.ITALIC,
    "em_close": Style.ITALIC,
    "s_open": Style.STRIKE,
    "s_close": Style.STRIKE,
}


def spans_of(tokens: Iterable[Token]) -> tuple[Span, ...]:
    """Inline tokens as spans; neighbours of the same style are one span, line breaks are newlines."""
    result: list[Span] = []
    open_styles: list[int] = []
    href = ""

    def put(text: str, style: int, target: str) -> None:
        if result and result[-1].style == style and result[-1].href == target:
            result[-1] = Span(result[-1].text + text, style, target)
        elif text:
            result.append(Span(text, style, target))

    for token in tokens:
        kind = token.type
        style = 0
        for one in open_styles:
            style |= one
        if kind in _TOGGLES:
            if kind.endswith("_open"):
                open_styles.append(_TOGGLES[kind])
            elif open_styles:
                open_styles.pop()
        elif kind == "link_open":
            href = str(token.attrs.get("href", ""))
        elif kind == "link_close":
            href = ""
        elif kind == "image":
            put(token.content or str(token.attrs.get("src", "")), style, str(token.attrs.get("src", "")))
        elif kind == "code_inline":
            put(token.content, style | Style.CODE, href)
        elif kind in ("softbreak", "hardbreak"):
            # Models break lines where they mean it, in verse and addresses; they do not fill paragraphs.
            put("\n", style, href)
        elif href or "://" not in token.content:
            put(token.content, style, href)
        else:
            _put_linked(token.content, style, put)
    return tuple(result)


def _put_linked(text: str, style: int, put: Callable[[str, int, str], None]) -> None:
    at = 0
    for match in _ADDRESS.finditer(text):
        put(text[at : match.start()], style, "")
        put(match.group(), style, match.group())
        at = match.end()
    put(text[at:], style, "")


def inline_spans(text: str, env: dict[str, object] | None = None) -> tuple[Span, ...]:
    """`text` as the inside of one block."""
    tokens = MARKDOWN.parseInline(text, {} if env is None else env)
    return spans_of(tokens[0].children or []) if tokens else ()


def _scan(text: str) -> tuple[list[str], int]:
    """The markers still open at the end of `text`, and the last place where none was (after a space)."""
    opened: list[str] = []
    balanced = 0
    code = ""
    for match in _MARK.finditer(text):
        mark = match.group()
        first = mark[0]
        if code:
            if mark == code:
                code = ""
        elif first == "`":
            code = mark
        elif first.isspace() or first >= "\u2e80":
            if not opened:
                balanced = match.end()
        elif first == "[":
            opened.append("[")
        elif first == "]":
            if "[" in opened and not _OPEN_ADDRESS.match(text, match.end()):
                del opened[len(opened) - 1 - opened[::-1].index("[") :]
        elif first in "*_~":
            _toggle(opened, mark, text, match.start(), match.end())
    if code:
        opened.append(code)
    return opened, balanced


def _toggle(opened: list[str], mark: str, text: str, start: int, end: int) -> None:
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    if before.isspace() and after.isspace():
        return
    if mark[0] == "_" and before.isalnum() and after.isalnum():
        return
    if mark in opened and not before.isspace():
        del opened[len(opened) - 1 - opened[::-1].index(mark) :]
    elif not after.isspace():
        opened.append(mark)


def balanced_end(text: str) -> int:
    """The last position after a space or an ideograph at which no marker is open, or 0."""
    return _scan(text)[1]


def mend(text: str) -> str:
    """`text` as it reads best while its end is missing: bare markers go, open ones are closed."""
    bare = _OPEN_TAIL.search(text)
    opened, _ = _scan(text)
    if bare is not None:
        if opened and opened[-1] == bare.group():
            opened.pop()
            text = text[: bare.start()]
        elif text[: bare.start()].endswith((" ", "\n")):
            text = text[: bare.start()]
    for mark in reversed(opened):
        if mark == "[":
            start = text.rfind("[")
            # A link shows its words at once; the address is still on its way.
            text = text[:start] + text[start + 1 :].split("](", 1)[0]
        else:
            text = (text if mark[0] == "`" else text.rstrip()) + mark
    return text
