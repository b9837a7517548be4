"""The incremental Markdown model: the same blocks however the text is cut, at linear cost."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laya_desktop.ui.chat.blocks import Block, Kind
from laya_desktop.ui.chat.inline import Span, Style, balanced_end, inline_spans, mend
from laya_desktop.ui.chat.markdown import MarkdownStream, parse

SAMPLE = """# Title

A *map* finds the **node**, and `code` too.
Second line.

1. first
1. second

   with a paragraph

   ```py
   def f():

       return 1
   ```
   - nested
   - deeper
     1. three
     2. four
1. third

> quoted **text**
> - item
> - other
>
> end

| name | size |
|:-----|----:|
| a    | 1 |
| b    | 2 |
| c    | `3` |

```go
type Cache struct {
    cap int
}
```
- [ ] open
- [x] done

---

<b>raw</b> ~~gone~~ [here](https://a.example/x) ![alt](https://a.example/i.png)
"""


def merged(blocks: list[Block]) -> list[Block]:
    """Blocks with those that join put together, as a reader sees them."""
    result: list[Block] = []
    for block in blocks:
        if not block.joins:
            result.append(block)
            continue
        last = result[-1]
        spans = list(last.spans)
        for span in block.spans:
            if spans and spans[-1].style == span.style and spans[-1].href == span.href:
                spans[-1] = spans[-1]._replace(text=spans[-1].text + span.text)
            else:
                spans.append(span)
        result[-1] = last._replace(spans=tuple(spans), rows=last.rows + block.rows, closed=True)
    return [block._replace(closed=True) for block in result]


def streamed(text: str, size: int, *, live: bool = True) -> list[Block]:
    stream = MarkdownStream(live=live)
    blocks: list[Block] = []
    committed: list[Block] = []
    for at in range(0, len(text), size):
        stream.feed(text[at : at + size])
        change = stream.update()
        assert change.keep >= len(committed)
        blocks[change.keep :] = change.blocks
        assert blocks[: len(committed)] == committed, "a committed block changed"
        committed = blocks[: change.committed]
    change = stream.update(final=True)
    blocks[change.keep :] = change.blocks
    assert blocks[: len(committed)] == committed
    assert change.committed == len(blocks)
    return merged(blocks)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 30, 200, 5000])
@pytest.mark.parametrize("live", [True, False])
def test_any_cut_gives_the_same_blocks(size: int, live: bool) -> None:
    assert streamed(SAMPLE, size, live=live) == merged(parse(SAMPLE))


def test_structure() -> None:
    blocks = merged(parse(SAMPLE))
    assert blocks[0] == Block(Kind.HEADING, (Span("Title"),), level=1)
    assert blocks[1].spans[1] == Span("map", Style.ITALIC)
    assert blocks[1].spans[-1].text.endswith(" too.\nSecond line.")
    markers = [(block.depth, block.marker) for block in blocks if block.marker]
    assert markers == [
        (1, "1."), (1, "2."), (2, "◦"), (2, "◦"), (3, "1."), (3, "2."), (1, "3."),
        (1, "•"), (1, "•"), (1, "☐"), (1, "☑"),
    ]  # fmt: skip
    code = [block for block in blocks if block.kind is Kind.CODE]
    assert code[0].spans[0].text == "def f():\n\n    return 1"
    assert (code[0].depth, code[0].language) == (1, "py")
    assert code[1].spans[0].text == "type Cache struct {\n    cap int\n}"
    table = next(block for block in blocks if block.kind is Kind.TABLE)
    assert len(table.rows) == 4
    assert table.aligns == ("left", "right")
    assert table.rows[3][1] == (Span("3", Style.CODE),)
    last = blocks[-1]
    assert last.spans[0].text.startswith("<b>raw</b>")
    assert Span("here", 0, "https://a.example/x") in last.spans
    assert Span("alt", 0, "https://a.example/i.png") in last.spans


_PIECES = st.sampled_from(
    ["word ", "**b** ", "`c`", "\n", "\n\n", "- item\n", "  - sub\n", "1. one\n", "   para\n\n", "> quote\n",
     "```py\n", "    x = 1\n", "```\n", "| a | b |\n", "|---|---|\n", "| 1 | 2 |\n", "# h\n", "---\n", "*",
     "_", "你好。", "[a](b) ", "\\(x_1\\)", "~~", "<i>", "===\n"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(_PIECES, max_size=40), st.integers(1, 9))
def test_arbitrary_text_neither_fails_nor_loses_words(pieces: list[str], size: int) -> None:
    text = "".join(pieces)
    blocks = streamed(text, size)
    assert sum(_words(block) for block in blocks) == text.count("word")


def _words(block: Block) -> int:
    cells = [cell for row in block.rows for cell in row]
    texts = ["".join(span.text for span in spans) for spans in (block.spans, *cells)]
    return sum(text.count("word") for text in texts) + block.language.count("word")


@pytest.mark.parametrize(
    "token",
    [
        "word **b** ",
        "plain prose here. ",
        "你好，世界。",
        "- item\n",
        "x" * 40 + "\n",
        "| a | b |\n",
        "> quote\n\n",
    ],
)
def test_cost_is_linear(token: str) -> None:
    def cost(count: int) -> float:
        stream = MarkdownStream()
        if token.startswith("|"):
            stream.feed("| h | i |\n|---|---|\n")
        if token.startswith("x"):
            stream.feed("```\n")
        begin = time.thread_time()
        for _ in range(count):
            stream.feed(token * 7)
            stream.update()
        return time.thread_time() - begin

    small, large = min(cost(100) for _ in range(3)), cost(400)
    assert large < 10 * small + 0.05  # quadratic would be 16 times


def test_a_long_paragraph_is_committed_in_balanced_pieces() -> None:
    text = "word **b** " * 1000
    blocks = []
    stream = MarkdownStream()
    for at in range(0, len(text), 80):
        stream.feed(text[at : at + 80])
        change = stream.update()
        blocks[change.keep :] = change.blocks
        assert sum(len(span.text) for block in change.blocks for span in block.spans) < 2000
    assert len(blocks) > 8
    change = stream.update(final=True)
    blocks[change.keep :] = change.blocks
    (whole,) = merged(blocks)
    assert sum(span.style == Style.BOLD for span in whole.spans) == 1000
    assert "".join(span.text for span in whole.spans) == ("word b " * 1000).rstrip()


def test_the_rest_of_a_split_paragraph_never_becomes_another_block() -> None:
    text = "word " * 200 + "# not a heading\n1. but this begins a list"
    blocks = streamed(text, 5)
    assert [block.kind for block in blocks] == [Kind.PARAGRAPH, Kind.PARAGRAPH]
    assert "# not a heading" in blocks[0].spans[0].text


def test_numbers_go_on_after_a_commit() -> None:
    blocks = streamed("1. a\n" * 30, 3)
    assert [block.marker for block in blocks] == [f"{n}." for n in range(1, 31)]


def test_formulas_keep_their_source() -> None:
    text = r"so \(a_1 * b_2 * c\) and \[x^2\] and $$\sum_{i}^{n} a_i * b * c$$ cost $5 or $6"
    assert parse(text)[0].spans == (Span(text),)


def test_bare_addresses_are_links_and_unsafe_ones_are_not() -> None:
    spans = inline_spans("see https://a.example/x?y=1. [bad](javascript:alert(1)) [f](file:///etc/passwd)")
    assert spans[1] == Span("https://a.example/x?y=1", 0, "https://a.example/x?y=1")
    assert all("javascript" not in span.href and "file" not in span.href for span in spans)


@pytest.mark.parametrize(
    ("open_text", "closed"),
    [
        ("a **bo", "a **bo**"),
        ("a **bo**", "a **bo**"),
        ("a **", "a "),
        ("a `x", "a `x`"),
        ("a *b **c", "a *b **c***"),
        ("see [here](http://x", "see here"),
        ("2 * 3", "2 * 3"),
        ("snake_case_name", "snake_case_name"),
    ],
)
def test_mend(open_text: str, closed: str) -> None:
    assert mend(open_text) == closed


def test_balanced_end() -> None:
    assert balanced_end("one **two three") == 4
    assert balanced_end("one **two** three") == 12
    assert balanced_end("`a b") == 0
    assert balanced_end("你好") == 2


def test_half_a_table_is_not_shown_as_text() -> None:
    stream = MarkdownStream()
    stream.feed("Look:\n\n| a | b |\n|--")
    assert [block.kind for block in stream.update().blocks] == [Kind.PARAGRAPH]
    stream.feed("|--|\n| 1 | 2 |\n| 3")
    blocks = stream.update().blocks
    assert blocks[-1].kind is Kind.TABLE


def test_definitions_after_their_use_are_known_when_the_text_is() -> None:
    spans = parse("see [the page][1]\n\n[1]: https://a.example/p")[0].spans
    assert spans[-1] == Span("the page", 0, "https://a.example/p")


def test_no_prefix_of_a_table_shows_its_source() -> None:
    text = "Look:\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n| 3 | 4 |\n"
    stream = MarkdownStream()
    blocks: list[Block] = []
    for char in text:
        stream.feed(char)
        change = stream.update()
        blocks[change.keep :] = change.blocks
        assert not any("|" in span.text for block in blocks for span in block.spans)
    assert sum(len(block.rows) for block in blocks) == 3
