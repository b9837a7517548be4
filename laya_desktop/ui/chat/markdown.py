"""Markdown that grows: text comes in pieces, blocks come out, and nothing finished is parsed twice.

Pure: no Qt, any thread. A `MarkdownStream` keeps only the unfinished end of its source, the tail. As soon
as a block has begun, everything before it is committed; a long paragraph is committed up to a place where
all markers are closed, a fence and a table up to their last complete line. To go on inside a list or a
table, the next parse gets a *skeleton* in front: just the lines that open those containers. The lines of a
fence never see the parser. The cost of a stream is thus linear in its length.

Whether a list is loose is ignored on purpose: its last line can change that and would move what is finished.
"""

import re
from dataclasses import dataclass
from typing import Any

from laya_desktop.ui.chat.blocks import Block, Change, Kind
from laya_desktop.ui.chat.inline import MARKDOWN, Span, balanced_end, inline_spans, mend
from laya_desktop.ui.chat.walk import Cut, Parsed, Walk

PREFIX_LIMIT = 800
"""Characters of an open paragraph or code line from which its beginning is committed."""
_REST_LIMIT = 160  # the same for the rest of one whose beginning is
_FORCE_LIMIT = 4 * PREFIX_LIMIT
_SURE_LENGTH = 80  # no line changes its kind after so many characters
_JOIN = "\ue000"  # private use: makes the rest of a split paragraph parse as text, whatever it begins with

_QUOTES = re.compile(r"[ \t]*(?:>[ ]?)*")
_ITEM = re.compile(r"[ \t]*(?:>[ ]?)*[ \t]*(?:[-+*]|\d{1,9}[.)])(?:[ ]{1,4}(?![ ])|[ ]|$)")
_BARE_MARKER = re.compile(r"[ \t>]*(?:`{1,3}|~{1,3}|#{1,6}|[-+*=|:_ ]{1,3}|\d{1,9}[.)]?)[ ]*")
_DELIMITER = re.compile(r"[|:\- ]*")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]\n]+\]:[ \t]*\S.*$", re.MULTILINE)


@dataclass(slots=True)
class _Fence:
    """An open fence. `indent` is its container's column, `strip` how much every line is moved left."""

    block: Block
    close: re.Pattern[str]
    indent: int
    strip: int
    skeleton: list[str]
    shifts: tuple[int, ...]
    begun: bool = False
    in_line: bool = False


class MarkdownStream:
    """Feed text, then call `update` for what changed since the last call.

    While `live`, the unfinished end is shown as it will probably read: `**bo` is bold, a lone `-` waits.
    """

    def __init__(self, *, live: bool = True) -> None:
        self._live = live
        self._tail = ""
        self._skeleton: list[str] = []
        self._in_table = False  # the skeleton ends with a table's first two lines
        self._shifts: tuple[int, ...] = ()
        self._fence: _Fence | None = None
        self._lead = ""  # containers of a paragraph whose beginning is committed
        self._joining = False
        self._committed = 0
        self._shown: list[Block] = []  # uncommitted blocks as last reported
        self._env: dict[str, Any] = {}

    def preload(self, text: str) -> None:
        """Learn the link definitions of a text that is known as a whole."""
        found = _REFERENCE.findall(text) if "]:" in text else None
        if found:
            MARKDOWN.parse("\n".join(found), self._env)

    def feed(self, text: str) -> None:
        if "\r" in text or "\0" in text or _JOIN in text:
            text = text.replace("\r\n", "\n").replace("\r", "").replace("\0", "\ufffd").replace(_JOIN, "")
        self._tail += text

    def update(self, *, final: bool = False) -> Change:
        """Parse the tail. With `final` everything is committed; feed nothing afterwards."""
        done: list[Block] = []
        while True:
            if self._fence is not None:
                shown = self._scan_code(self._fence, done, final)
                if self._fence is not None:
                    break
                continue
            parsed = self._parse(final)
            shown = parsed.blocks
            if final or not self._advance(parsed, done):
                break
        if final:
            done += shown
            shown = []
            self._tail = ""
        fresh = done + shown
        same = 0
        for old, new in zip(self._shown, fresh, strict=False):
            if old != new:
                break
            same += 1
        keep = self._committed + same
        self._committed += len(done)
        self._shown = shown
        return Change(keep, fresh[same:], self._committed)

    # Blocks

    def _known(self) -> dict[str, Any]:
        """What the parser may know; a copy, because it would also learn from half a definition."""
        return {"references": dict(self._env.get("references", {}))}

    def _parse(self, final: bool) -> Parsed:
        tail = self._tail
        if self._live and not final:
            tail = self._without_bare_marker(tail)
        first = self._lead + _JOIN + tail if self._joining else tail
        source = "\n".join([*self._skeleton, first])
        parsed = Parsed(source.split("\n"), len(self._skeleton))
        Walk(parsed, self._shifts, final).run(MARKDOWN.parse(source, self._known()))
        if self._joining and parsed.blocks:
            _strip_join(parsed.blocks)
        if self._live and not final and parsed.blocks and parsed.last_text:
            mended = mend(parsed.last_text)
            if mended != parsed.last_text:
                spans = inline_spans(mended.removeprefix(_JOIN), self._known())
                parsed.blocks[-1] = parsed.blocks[-1]._replace(spans=spans)
        return parsed

    def _without_bare_marker(self, tail: str) -> str:
        """The tail without a last line that is only the beginning of something: it would flicker."""
        start = tail.rfind("\n") + 1
        if start == 0 and self._joining:
            return tail
        if _BARE_MARKER.fullmatch(tail, start):
            tail = tail[:start]
        return _without_half_table(tail, self._in_table) if "|" in tail else tail

    def _advance(self, parsed: Parsed, done: list[Block]) -> bool:
        """Commit what is finished and shorten the tail. Whether there may be more to commit."""
        complete = parsed.first + self._tail.count("\n")
        for cut in reversed(parsed.cuts):
            if cut.line > parsed.first and _is_sure(parsed.lines, cut, complete):
                done += parsed.blocks[: cut.blocks]
                self._cut_to(parsed, cut)
                return True
        if parsed.last is None or parsed.inside is None or parsed.inside.line != parsed.first:
            return False
        if parsed.last.type == "fence":
            return self._enter_fence(parsed, done, complete)
        limit = _REST_LIMIT if self._joining else PREFIX_LIMIT
        if parsed.last.type == "paragraph_open" and len(parsed.last_text) > limit:
            return self._commit_prefix(parsed, done)
        return False

    def _cut_to(self, parsed: Parsed, cut: Cut) -> None:
        tail_lines = self._tail.split("\n")
        self.preload("\n".join(tail_lines[: cut.line - parsed.first]))
        self._tail = "\n".join(tail_lines[cut.line - parsed.first :])
        self._joining = False
        self._lead = ""
        self._shifts = cut.shifts
        in_table = cut.table is not None and cut.table < parsed.first
        if cut.table is None:
            self._skeleton = _skeleton(parsed.lines, cut.items)
        elif not in_table:
            header = parsed.lines[cut.table : cut.table + 2]
            self._skeleton = _skeleton(parsed.lines, cut.items) + header
        self._in_table = cut.table is not None

    def _commit_prefix(self, parsed: Parsed, done: list[Block]) -> bool:
        """Commit the beginning of a long paragraph, up to where no marker is open."""
        text = parsed.last_text
        end = balanced_end(text[: len(text) - 1])
        if end < _REST_LIMIT // 4:
            if len(text) < _FORCE_LIMIT:
                return False
            end = text.rfind(" ", 0, len(text) - 1) + 1 or len(text) - 1
        rest = text[end:].split("\n")
        tail_lines = self._tail.rstrip().split("\n")
        if len(rest) > len(tail_lines) or not tail_lines[-len(rest)].endswith(rest[0]):
            return False
        tail_lines[-len(rest)] = rest[0]
        done += parsed.blocks[:-1]
        spans = inline_spans(text[:end].removeprefix(_JOIN), self._env)
        done.append(parsed.blocks[-1]._replace(spans=spans))
        if not self._joining:
            assert parsed.inside is not None
            self._lead = _prefix(parsed.lines[parsed.first], parsed.inside.items.count(parsed.first))
        trailing = self._tail[len(self._tail.rstrip()) :]
        self._tail = "\n".join(tail_lines[-len(rest) :]) + trailing
        self._joining = True
        return True

    # Fences

    def _enter_fence(self, parsed: Parsed, done: list[Block], complete: int) -> bool:
        block, inside, token = parsed.blocks[-1], parsed.inside, parsed.last
        assert token is not None
        assert inside is not None
        if block.closed or block.quote or complete <= parsed.first:
            return False
        items = inside.items
        column = len(_prefix(parsed.lines[items[-1]], items.count(items[-1]))) if items else 0
        mark = re.escape(token.markup[0])
        self._fence = _Fence(
            block._replace(spans=(), joins=True, marker=""),
            re.compile(rf"[ ]{{0,{column + 3}}}{mark}{{{len(token.markup)},}}[ \t]*"),
            column,
            max(column, parsed.lines[parsed.first].find(token.markup)),
            _skeleton(parsed.lines, items),
            inside.shifts,
        )
        done += parsed.blocks[:-1]
        done.append(block._replace(spans=()))
        self._tail = self._tail.split("\n", 1)[1]
        return True

    def _scan_code(self, fence: _Fence, done: list[Block], final: bool) -> list[Block]:
        """Commit whole lines of code; what there is of the next line is returned."""
        *lines, rest = self._tail.split("\n")
        if final and rest:
            lines.append(rest)
            rest = ""
        code: list[str] = []
        used, ended, new_line = 0, False, fence.begun and not fence.in_line
        for line in lines:
            closing = not fence.in_line and fence.close.fullmatch(line) is not None
            if closing or (not fence.in_line and _leaves(line, fence.indent)):
                used += closing
                ended = True
                break
            used += 1
            code.append(line if fence.in_line else _moved_left(line, fence.strip))
            fence.in_line, fence.begun = False, True
        if code or ended or final:
            text = "\n" * (new_line and bool(code)) + "\n".join(code)
            spans = (Span(text),) if text else ()
            done.append(fence.block._replace(spans=spans, closed=ended or final))
        if ended or final:
            self._tail = "\n".join([*lines[used:], rest])
            self._skeleton, self._shifts, self._fence = fence.skeleton, fence.shifts, None
            return []
        return self._open_line(fence, rest, done)

    def _open_line(self, fence: _Fence, line: str, done: list[Block]) -> list[Block]:
        self._tail = line
        if not line or (not fence.in_line and not line.strip(" \t`~")):
            return []  # perhaps the closing fence
        text = line
        if not fence.in_line:
            text = ("\n" if fence.begun else "") + _moved_left(line, fence.strip)
        piece = fence.block._replace(spans=(Span(text),))
        if len(line) <= PREFIX_LIMIT:
            return [piece]
        done.append(piece)
        self._tail = ""
        fence.in_line = fence.begun = True
        return []


class PlainStream:
    """The same interface for text that is no Markdown: one block that grows."""

    def __init__(self) -> None:
        self._text = ""
        self._committed = 0

    def feed(self, text: str) -> None:
        self._text += text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")

    def update(self, *, final: bool = False) -> Change:
        """Everything fed since the last call, committed."""
        keep, text = self._committed, self._text
        if not text:
            return Change(keep, [], keep)
        self._text = ""
        self._committed += 1
        return Change(keep, [Block(Kind.PLAIN, (Span(text),), joins=keep > 0)], self._committed)


def parse(text: str) -> list[Block]:
    """A whole text as blocks; those that join are not merged."""
    stream = MarkdownStream(live=False)
    stream.preload(text)
    stream.feed(text)
    return stream.update(final=True).blocks


def _is_sure(lines: list[str], cut: Cut, complete: int) -> bool:
    """Whether what begins at the cut will begin there whatever text follows."""
    if not lines[cut.line - 1].strip(" \t>") or len(lines[cut.line]) > _SURE_LENGTH:
        return True
    # A table shows with its second line that the first one was its beginning.
    needed = cut.line + 1 if lines[cut.line].lstrip(" >").startswith("|") and cut.table is None else cut.line
    return needed < complete


def _prefix(line: str, markers: int) -> str:
    """The beginning of `line` that opens its quotes and so many list items."""
    at = 0
    for _ in range(markers):
        match = _ITEM.match(line, at)
        at = match.end() if match else at
    match = _QUOTES.match(line, at)
    return line[: match.end() if match else at]


def _skeleton(lines: list[str], items: tuple[int, ...]) -> list[str]:
    """Lines that open the list items which began at `items`, and a blank one that ends their text."""
    result: list[str] = []
    for line in dict.fromkeys(items):
        prefix = _prefix(lines[line], items.count(line))
        result.append(prefix + ("x" if prefix.endswith(" ") else " x"))
    if result:
        match = _QUOTES.match(result[-1])
        result.append(match.group().rstrip() if match else "")
    return result


def _without_half_table(tail: str, in_table: bool) -> str:
    """The tail without lines that would show as text now and as a table or its next row soon."""
    lines = tail.split("\n")
    ended = lines[-1] == ""
    if ended:
        del lines[-1]
    run = 0
    while run < len(lines) and lines[-1 - run].lstrip().startswith("|"):
        run += 1
    is_table = in_table or (run > 1 and _DELIMITER.fullmatch(lines[1 - run]) is not None)
    held = 0
    if is_table and not ended:
        held = run if run == 2 and not in_table else 1
    elif run == 1 and not is_table:
        held = 1
    if not run or not held:
        return tail
    return "".join(line + "\n" for line in lines[:-held])


def _strip_join(blocks: list[Block]) -> None:
    """Turn the first block back into the rest of a paragraph, whatever its end made of it."""
    first = blocks[0]
    spans = list(first.spans)
    if spans:
        spans[0] = spans[0]._replace(text=spans[0].text.removeprefix(_JOIN))
        spans = spans if spans[0].text else spans[1:]
    if spans:
        blocks[0] = first._replace(kind=Kind.PARAGRAPH, spans=tuple(spans), marker="", level=0, joins=True)
    else:
        del blocks[0]


def _leaves(line: str, indent: int) -> bool:
    """Whether a line has left the list item whose text begins at column `indent`."""
    return bool(line.strip()) and len(line) - len(line.lstrip(" ")) < indent


def _moved_left(line: str, columns: int) -> str:
    if not columns:
        return line
    return line[min(columns, len(line) - len(line.lstrip(" "))) :]
