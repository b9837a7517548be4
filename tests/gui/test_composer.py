"""GUI-02: what Enter does, with input methods, while an answer streams, and with what people paste."""

from time import thread_time

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from laya_desktop.ui import theme
from laya_desktop.ui.chat.composer import Composer
from laya_desktop.ui.chat.prompt_edit import clean


@pytest.fixture
def composer(qtbot: QtBot, qapp: QApplication) -> Composer:
    theme.apply(qapp, "light")
    composer = Composer()
    composer.sent = []  # type: ignore[attr-defined]
    composer.submitted.connect(composer.sent.append)  # type: ignore[attr-defined]
    composer.resize(700, 100)
    qtbot.addWidget(composer)
    composer.show()
    return composer


def sent(composer: Composer) -> list[str]:
    return composer.sent  # type: ignore[attr-defined, no-any-return]


def press_enter(qtbot: QtBot, composer: Composer, **options: object) -> None:
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return, **options)


def compose(composer: Composer, preedit: str, commit: str = "") -> None:
    event = QInputMethodEvent(preedit, [])
    if commit:
        event.setCommitString(commit)
    QApplication.sendEvent(composer.edit, event)


def test_enter_sends_once_and_clears(qtbot: QtBot, composer: Composer) -> None:
    composer.edit.setPlainText("hello")
    press_enter(qtbot, composer)
    press_enter(qtbot, composer)
    assert sent(composer) == ["hello"]
    assert composer.edit.toPlainText() == ""


def test_enter_never_sends_while_an_input_method_composes(qtbot: QtBot, composer: Composer) -> None:
    compose(composer, "にほん")
    press_enter(qtbot, composer)
    assert sent(composer) == []
    compose(composer, "", commit="日本")
    press_enter(qtbot, composer)
    assert sent(composer) == ["日本"]


def test_the_button_does_not_send_half_composed_text(qtbot: QtBot, composer: Composer) -> None:
    composer.edit.setPlainText("so far ")
    composer.edit.moveCursor(composer.edit.textCursor().MoveOperation.End)
    compose(composer, "にほん")
    composer.send()
    assert sent(composer) == []


def test_shift_enter_is_a_newline(qtbot: QtBot, composer: Composer) -> None:
    composer.edit.setPlainText("one")
    composer.edit.moveCursor(composer.edit.textCursor().MoveOperation.End)
    before = composer.edit.height()
    press_enter(qtbot, composer, modifier=Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(composer.edit, "two")
    assert composer.edit.height() > before
    press_enter(qtbot, composer)
    assert sent(composer) == ["one\ntwo"]


@pytest.mark.parametrize("text", ["", " ", "\n\t \n", "\u3000"])
def test_blank_text_is_not_sent(qtbot: QtBot, composer: Composer, text: str) -> None:
    composer.edit.setPlainText(text)
    press_enter(qtbot, composer)
    assert sent(composer) == []


def test_enter_is_ignored_while_an_answer_streams(qtbot: QtBot, composer: Composer) -> None:
    composer.set_streaming(True)
    composer.edit.setPlainText("next")
    press_enter(qtbot, composer)
    assert sent(composer) == []
    assert composer.edit.toPlainText() == "next"
    composer.set_streaming(False)
    press_enter(qtbot, composer)
    assert sent(composer) == ["next"]


def test_send_turns_into_stop(qtbot: QtBot, composer: Composer) -> None:
    composer.set_streaming(True)
    assert composer.button.text() == "Stop"
    with qtbot.waitSignal(composer.stop_requested):
        qtbot.mouseClick(composer.button, Qt.MouseButton.LeftButton)
    composer.set_streaming(False)
    assert composer.button.text() == "Send"


@pytest.mark.parametrize("text", ["word and 中文 " * 85_000, "line\n" * 200_000, "x" * 1_000_000])
def test_a_megabyte_is_pasted_within_a_second(composer: Composer, text: str) -> None:
    mime = QMimeData()
    mime.setText(text)
    # This thread's own time, because the test may run beside other work.
    started = thread_time()
    composer.edit.insertFromMimeData(mime)
    QApplication.processEvents()
    assert thread_time() - started < 1.0
    assert len(composer.edit.toPlainText()) == len(text)


def test_rich_text_becomes_plain(composer: Composer) -> None:
    mime = QMimeData()
    mime.setHtml("<b>bold</b> <img src='file:///etc/passwd'>")
    mime.setText("bold")
    composer.edit.insertFromMimeData(mime)
    assert composer.edit.toPlainText() == "bold"


def test_odd_characters_are_cleaned() -> None:
    assert clean("a\0b") == "ab"
    assert clean("a\u2028b\u2029c") == "a\nb\nc"
    assert clean("x\ud83dy") == "x\ufffdy"
    assert clean("🦙 한국어") == "🦙 한국어"


def test_the_context_meter_shows_used_and_limit(composer: Composer) -> None:
    assert composer._meter.isHidden()
    composer.set_context((1234, 8192))
    assert composer._meter_text.text() == "context 1.2k / 8k"


def test_stop_by_mouse_leaves_the_keyboard_in_the_composer(qtbot: QtBot) -> None:
    composer = Composer()
    qtbot.addWidget(composer)
    composer.stop_requested.connect(lambda: composer.set_streaming(False))
    with qtbot.waitActive(composer):
        composer.show()
        composer.activateWindow()
    composer.set_streaming(True)
    composer.button.setFocus()
    qtbot.mouseClick(composer.button, Qt.MouseButton.LeftButton)
    assert composer.focusWidget() is composer.edit
