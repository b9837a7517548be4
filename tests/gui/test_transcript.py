"""The transcript: streaming, following, recycling, links, copying, themes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from time import thread_time

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QAccessible, QColor, QGuiApplication, QTextCursor, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from laya_desktop.ui import theme
from laya_desktop.ui.chat import highlight
from laya_desktop.ui.chat.document import AnswerDocument
from laya_desktop.ui.chat.formats import Prop
from laya_desktop.ui.chat.markdown import MarkdownStream
from laya_desktop.ui.chat.message_view import MessageView
from laya_desktop.ui.chat.text_body import TextBody
from laya_desktop.ui.chat.transcript import MessageData, Transcript

MARKDOWN = """# Title

Some **bold** and `code` with 😀 and [a link](https://a.example/x).

1. one
2. two
   - nested

> quoted

| a | b |
|---|---|
| 1 | **2** |

---

```python
def f(x):
    return "text" + str(x)  # 😀 comment
```

The end.
"""
PLAIN = """Title
Some bold and code with 😀 and a link.
1. one
2. two
◦ nested
quoted
a\tb
1\t2
---
def f(x):
    return "text" + str(x)  # 😀 comment
The end."""


@pytest.fixture
def view(qapp: QApplication) -> Iterator[Transcript]:
    theme.apply(qapp, "light")
    transcript = Transcript()
    transcript.resize(860, 600)
    transcript.show()
    yield transcript
    transcript.close()
    transcript.deleteLater()
    theme.apply(qapp, "light")


def chat(count: int, lines: int = 3) -> list[MessageData]:
    return [
        MessageData(
            str(at), "assistant" if at % 2 else "user", f"Message {at}. " + "Some words here.\n" * lines
        )
        for at in range(count)
    ]


def body(view: Transcript, message_id: str) -> TextBody:
    return shown(view)[message_id].body


def shown(view: Transcript) -> dict[str, MessageView]:
    return {one.data.id: one for one in view.findChildren(MessageView) if not one.isHidden()}


def at_end(view: Transcript) -> bool:
    bar = view.verticalScrollBar()
    return bar.value() == bar.maximum()


def idle(qtbot: QtBot, view: Transcript) -> None:
    qtbot.waitUntil(lambda: not view.is_busy())


def document_of(text: str, size: int, *, width: int = 500) -> AnswerDocument:
    document = AnswerDocument()
    document.setTextWidth(width)
    stream = MarkdownStream(live=size < len(text))
    for at in range(0, len(text), size):
        stream.feed(text[at : at + size])
        document.apply(stream.update())
    document.apply(stream.update(final=True))
    return document


def fingerprint(document: AnswerDocument) -> list[object]:
    """Text and looks of every paragraph, seams closed."""
    result: list[list[object]] = []
    block = document.begin()
    while block.isValid():
        made = block.blockFormat()
        runs: list[tuple[str, object]] = []
        at = block.begin()
        while not at.atEnd():
            char = at.fragment().charFormat()
            looks = (char.fontWeight(), char.fontItalic(), char.anchorHref(), char.property(Prop.STYLE))
            runs.append((at.fragment().text(), looks))
            at += 1
        look = [made.topMargin(), made.leftMargin(), made.lineHeight()]
        look += [
            made.property(prop) for prop in (Prop.MARKER, Prop.QUOTE, Prop.CODE, Prop.LANGUAGE, Prop.SPACER)
        ]
        if made.hasProperty(Prop.SEAM):
            if made.property(Prop.SEAM) == 2:
                runs.insert(0, ("\u2028", runs[0][1]))
            result[-1][-1] += runs  # type: ignore[operator]
        else:
            result.append([look, runs])
        block = block.next()
    return [[look, _joined(runs)] for look, runs in result]  # type: ignore[arg-type]


def _joined(runs: list[tuple[str, object]]) -> list[tuple[str, object]]:
    result: list[tuple[str, object]] = []
    for text, looks in runs:
        if result and result[-1][1] == looks:
            result[-1] = (result[-1][0] + text, looks)
        else:
            result.append((text, looks))
    return result


# The document


@pytest.mark.parametrize("size", [1, 3, 17, 120])
@pytest.mark.parametrize(
    "text",
    [
        MARKDOWN,
        MARKDOWN * 3,
        "```go\nx\n\ny\n```\n" + MARKDOWN,
        "|a|b|\n|-|-|\n" + "|1|2|\n" * 60 + "\ntext",
        "word **b** " * 300,
        "line one\nline two is longer\n" * 80,
        "你好世界" * 600,
        "```\n" + "x" * 3000 + "\n" + "y" * 10 + "\n```\n",
    ],
)
def test_a_streamed_document_is_the_whole_one(qapp: QApplication, text: str, size: int) -> None:
    whole = document_of(text, len(text))
    streamed = document_of(text, size)
    assert fingerprint(streamed) == fingerprint(whole)
    end = whole.characterCount() - 1
    assert streamed.text_between(0, streamed.characterCount() - 1) == whole.text_between(0, end)


def test_selected_text_is_what_the_reader_sees(qapp: QApplication) -> None:
    document = document_of(MARKDOWN, 5)
    assert document.text_between(0, document.characterCount() - 1) == PLAIN
    assert document.code_text(document.code_starts()[0]).startswith("def f(x):\n    return")


def test_seams_are_invisible_at_every_width(qapp: QApplication) -> None:
    text = "word **b** and some more words " * 200
    document = document_of(text, 40, width=500)
    before = document.text_between(0, document.characterCount() - 1)
    assert document.has_seams()
    for width in (300, 640, 500):
        document.setTextWidth(width)
        for _ in document.move_seams():
            pass
        one = AnswerDocument()
        one.setTextWidth(width)
        QTextCursor(one).insertText(before)
        lines = sum(block.layout().lineCount() for block in _laid_out(document))
        assert document.text_between(0, document.characterCount() - 1) == before
        seams = [block for block in _laid_out(document) if block.next().isValid()]
        for block in seams:
            last = block.layout().lineAt(block.layout().lineCount() - 1)
            # A line before a seam is full: the next word would not have fitted.
            assert last.naturalTextWidth() > width - 80
        assert lines > 10


def _laid_out(document: AnswerDocument) -> list:
    document.size()
    blocks = []
    block = document.begin()
    while block.isValid():
        blocks.append(block)
        block = block.next()
    return blocks


def test_no_resource_is_ever_loaded(qapp: QApplication, tmp_path: Path) -> None:
    document = document_of("![x](file:///etc/hostname) ![y](https://a.example/i.png) <img src='x.png'>", 9)
    assert document.loadResource(2, QUrl("file:///etc/hostname")) is None
    assert document.resource(2, QUrl("file:///etc/hostname")) is None
    assert "<img" in document.toPlainText()


# Streaming


def test_text_streams_into_the_bubble(view: Transcript, qtbot: QtBot) -> None:
    view.append(MessageData("q", "user", "Hello"))
    view.append(MessageData("a", "assistant", model="m", state="streaming", status="queued · 2nd"))
    for at in range(0, len(MARKDOWN), 7):
        view.stream_text("a", MARKDOWN[at : at + 7])
    qtbot.waitUntil(lambda: "The end." in body(view, "a").toPlainText())
    view.finish("a", footer="12 tokens")
    idle(qtbot, view)
    assert view.message("a").text == MARKDOWN
    assert view.message("a").state == "complete"
    assert body(view, "a").answer().text_between(0, 10**6) == PLAIN
    assert at_end(view)


def test_an_unfinished_end_is_rendered_for_the_reader(view: Transcript, qtbot: QtBot) -> None:
    view.append(MessageData("a", "assistant", state="streaming"))
    view.stream_text("a", "Some **bol")
    view.flush()
    assert body(view, "a").toPlainText() == "Some bol"
    view.finish("a")
    idle(qtbot, view)
    assert body(view, "a").toPlainText() == "Some **bol"


def test_follows_at_the_end_and_stays_put_when_scrolled_up(view: Transcript, qtbot: QtBot) -> None:
    view.set_messages(chat(30))
    view.append(MessageData("a", "assistant", state="streaming"))
    idle(qtbot, view)
    assert at_end(view)
    bar = view.verticalScrollBar()
    bar.setValue(bar.value() - 300)
    idle(qtbot, view)
    seen = {one: shown(view)[one].y() for one in shown(view) if 0 < shown(view)[one].y() < 500}
    assert seen
    for _ in range(20):
        view.stream_text("a", "more words\n\n")
        view.flush()
    assert {one: shown(view)[one].y() for one in seen} == seen
    assert not at_end(view)
    assert view.jump_button().isVisible()
    view.jump_button().click()
    assert at_end(view)
    assert view.jump_button().isHidden()


def test_the_users_own_message_brings_the_end_back(view: Transcript, qtbot: QtBot) -> None:
    view.set_messages(chat(30))
    view.verticalScrollBar().setValue(0)
    assert not at_end(view)
    view.append(MessageData("q", "user", "Next"))
    assert at_end(view)


def test_text_that_streams_off_screen_is_there_later(view: Transcript, qtbot: QtBot) -> None:
    view.set_messages([*chat(40), MessageData("a", "assistant", "first ", state="streaming")])
    view.verticalScrollBar().setValue(0)
    idle(qtbot, view)
    assert "a" not in shown(view)
    view.stream_text("a", "second")
    view.finish("a")
    view.scroll_to_end()
    idle(qtbot, view)
    assert body(view, "a").toPlainText() == "first second"


def test_resize_in_mid_stream_keeps_the_end_and_the_text(view: Transcript, qtbot: QtBot) -> None:
    view.append(MessageData("a", "assistant", state="streaming"))
    for at in range(40):
        view.stream_text("a", "word **b** " * 20)
        view.flush()
        view.resize(860 - 8 * at, 600)
    view.finish("a")
    idle(qtbot, view)
    assert at_end(view)
    assert body(view, "a").answer().text_between(0, 10**6) == ("word b " * 800).rstrip()


# Recycling and heights


def test_only_what_is_near_has_widgets(view: Transcript, qtbot: QtBot) -> None:
    view.set_messages(chat(500))
    idle(qtbot, view)
    bar = view.verticalScrollBar()
    for value in range(bar.maximum(), 0, -bar.maximum() // 15):
        bar.setValue(value)
        idle(qtbot, view)
    assert len(view.findChildren(MessageView)) < 60


def test_scrolling_up_through_estimates_does_not_jump(view: Transcript, qtbot: QtBot) -> None:
    messages = chat(60)
    for at, message in enumerate(messages):
        message.text = "- item\n" * (at % 9 + 1) + "# Heading\n\n" + "long words " * (at * 7 % 120)
    view.set_messages(messages)
    idle(qtbot, view)
    centre = QPointF(view.viewport().rect().center())
    for _ in range(80):
        before = {one: item.y() for one, item in shown(view).items() if -50 < item.y() < 550}
        wheel = QWheelEvent(
            centre, view.mapToGlobal(centre), QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        old = view.verticalScrollBar().value()
        QApplication.sendEvent(view.viewport(), wheel)
        after = {one: item.y() for one, item in shown(view).items()}
        moved = {after[one] - y for one, y in before.items() if one in after and y >= 0}
        assert len(moved) <= 1
        if old > 60 and moved:
            assert moved == {60}


def test_a_large_answer_comes_in_slices(view: Transcript, qtbot: QtBot) -> None:
    text = "```python\n" + "x = compute(1)\n" * 6000 + "```\n\nThe end."
    view.set_messages([MessageData("a", "assistant", text)])
    assert "The end." not in body(view, "a").toPlainText()
    idle(qtbot, view)
    assert body(view, "a").toPlainText().endswith("The end.")
    assert at_end(view)


def test_messages_can_be_removed_and_replaced(view: Transcript, qtbot: QtBot) -> None:
    view.set_messages(chat(6))
    view.remove("3")
    idle(qtbot, view)
    assert "3" not in shown(view)
    view.update_message("1", text="Another **text**", footer="new")
    idle(qtbot, view)
    assert body(view, "1").toPlainText() == "Another text"
    view.clear()
    assert not shown(view)
    view.stream_text("1", "nobody")  # late text of a chat that is gone
    view.set_messages([])
    view.set_messages(chat(2))
    assert set(shown(view)) == {"0", "1"}


# What can be done


def test_an_error_is_inline_with_retry_and_copy(view: Transcript, qtbot: QtBot) -> None:
    view.append(MessageData("a", "assistant", "Part", state="error", error="Out of memory. Free some."))
    idle(qtbot, view)
    labels = [
        one.text()
        for one in shown(view)["a"].findChildren(object)
        if hasattr(one, "text") and callable(one.text)
    ]
    assert "Out of memory. Free some." in labels
    panel = shown(view)["a"].error_panel()
    assert panel is not None
    with qtbot.waitSignal(view.retry_requested) as blocker:
        panel.retry_link.click()
    assert blocker.args == ["a"]
    panel.copy_link.click()
    assert QGuiApplication.clipboard().text() == "Out of memory. Free some."


def test_the_why_chip_asks(view: Transcript, qtbot: QtBot) -> None:
    view.append(MessageData("a", "assistant", "Hi", model="m", why="why: code"))
    with qtbot.waitSignal(view.why_requested) as blocker:
        shown(view)["a"].why_chip.click()
    assert blocker.args == ["a"]


def test_a_link_opens_only_after_asking(view: Transcript, qtbot: QtBot) -> None:
    view.append(MessageData("a", "assistant", "[a link](https://a.example/x?y=1)"))
    idle(qtbot, view)
    text = body(view, "a")
    with qtbot.assertNotEmitted(view.link_activated):
        QTest.mouseClick(text.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(12, 10))
    popover = view.popover()
    assert popover.isVisible()
    assert "a.example" in popover.text()
    with qtbot.waitSignal(view.link_activated) as blocker:
        popover.open_button.click()
    assert blocker.args == ["https://a.example/x?y=1"]
    assert popover.isHidden()


def test_copying_code_copies_the_code_alone(view: Transcript, qtbot: QtBot) -> None:
    view.append(MessageData("a", "assistant", MARKDOWN))
    idle(qtbot, view)
    text = body(view, "a")
    text.copy_code(text.answer().code_starts()[0])
    assert QGuiApplication.clipboard().text() == 'def f(x):\n    return "text" + str(x)  # 😀 comment'


def test_code_is_coloured_after_its_fence_closes(view: Transcript, qtbot: QtBot) -> None:
    view.append(MessageData("a", "assistant", MARKDOWN))
    idle(qtbot, view)
    assert "#7a3ec8" in code_colours(view)
    theme.apply(QApplication.instance(), "dark")  # type: ignore[arg-type]
    idle(qtbot, view)
    assert theme.current().code_keyword in code_colours(view)
    assert "#7a3ec8" not in code_colours(view)
    links = [
        run.foreground().color().name()
        for run in (fragment for fragment in char_formats(body(view, "a").answer()))
        if run.isAnchor()
    ]
    assert links == [theme.current().accent]


def code_colours(view: Transcript) -> set[str]:
    answer = body(view, "a").answer()
    first, last = answer.code_lines(answer.code_starts()[0])
    return {
        run.format.foreground().color().name() for run in first.layout().formats() + last.layout().formats()
    }


def char_formats(document: AnswerDocument) -> list:
    formats = []
    for block in _laid_out(document):
        at = block.begin()
        while not at.atEnd():
            formats.append(at.fragment().charFormat())
            at += 1
    return formats


@pytest.mark.parametrize("key", [Qt.Key.Key_PageUp, Qt.Key.Key_Up, Qt.Key.Key_Home])
def test_keys_scroll_also_from_inside_a_message(view: Transcript, qtbot: QtBot, key: Qt.Key) -> None:
    view.set_messages(chat(40))
    idle(qtbot, view)
    before = view.verticalScrollBar().value()
    QTest.keyClick(body(view, "39"), key)
    assert view.verticalScrollBar().value() < before
    QTest.keyClick(view, Qt.Key.Key_End)
    assert at_end(view)


def test_a_screen_reader_can_read_the_message(view: Transcript, qtbot: QtBot) -> None:
    view.append(MessageData("a", "assistant", "Some **bold** text", model="coder"))
    idle(qtbot, view)
    text = QAccessible.queryAccessibleInterface(body(view, "a"))
    assert text is not None
    assert "coder" in shown(view)["a"].accessibleName()
    assert body(view, "a").accessibleName()
    assert body(view, "a").toPlainText() == "Some bold text"


@pytest.mark.parametrize("name", ["light", "dark"])
def test_colours_have_contrast(qapp: QApplication, name: str) -> None:
    theme.apply(qapp, name)  # type: ignore[arg-type]
    tokens = theme.current()
    inline_code = theme.mix(tokens.code_background, tokens.line, 0.6).name()
    pairs = [
        (tokens.text, inline_code),
        (tokens.accent, tokens.background),
        (tokens.danger, tokens.danger_tint),
        (tokens.text, tokens.accent_tint),
        (tokens.accent, tokens.accent_tint),
        *(
            (getattr(tokens, f"code_{one}"), tokens.code_background)
            for one in ("keyword", "string", "comment")
        ),
    ]
    assert all(theme.contrast(*pair) >= 4.5 for pair in pairs), pairs
    theme.apply(qapp, "light")


def test_the_page_is_painted_in_the_themes_colours(view: Transcript, qtbot: QtBot) -> None:
    view.set_messages(chat(4))
    idle(qtbot, view)
    for name in ("dark", "light"):
        theme.apply(QApplication.instance(), name)  # type: ignore[arg-type]
        wanted = QColor(theme.current().background)
        qtbot.waitUntil(lambda wanted=wanted: view.grab().toImage().pixelColor(3, 300) == wanted)


def test_language_change_reaches_every_part(view: Transcript, qtbot: QtBot) -> None:
    view.append(MessageData("a", "assistant", "Hi", model="m"))
    QApplication.sendEvent(view, QEvent(QEvent.Type.LanguageChange))
    assert view.accessibleName() == "Conversation"


def test_quick_bench_runs_within_generous_bounds() -> None:
    script = Path(__file__).parents[1] / "bench" / "bench_ui.py"
    done = subprocess.run(
        [sys.executable, str(script), "--quick", "--times", "1"], capture_output=True, text=True, timeout=100
    )
    figures = {line["figure"]: line["value"] for line in map(json.loads, done.stdout.splitlines())}
    assert figures["markers_cpu_percent"] < 100
    assert figures["code_stall_ms"] < 500
    assert figures["open_2000_ms"] < 2000


def test_code_that_waits_for_its_lexer_does_not_keep_the_thread(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    lexer: Future[None] = Future()
    monkeypatch.setattr(highlight._lexers, "submit", lambda *_arguments: lexer)
    body = TextBody()
    qtbot.addWidget(body)
    body.set_text("```python\nx = 1\n```\n", plain=False)
    while body.advance(1.0):
        pass
    started = thread_time()
    assert body.work(0.3)
    assert thread_time() - started < 0.1
    lexer.set_result(None)
    assert not body.work(0.3)
