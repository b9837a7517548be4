"""Chats that stream: side by side, stopped, failed and tried again, too long for the context."""

import gc
from collections.abc import Callable
from threading import Event
from weakref import ref

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.events import (
    Accepted,
    Delta,
    Loading,
    ModelsChanged,
    Prefill,
    Queued,
    RequestEvent,
    Routed,
)
from laya_desktop.core.types import AUTO_MODEL, ChatRequest, Role
from laya_desktop.store.conversations import ConversationStore, StoredMessage
from laya_desktop.ui.chat.session import ChatSession
from laya_desktop.ui.chat.sessions import KEPT
from laya_desktop.ui.chat.turn import Phase, Turn, status_text
from tests.gui.conftest import Desk
from tests.gui.fake_handle import FakeHandle, answer, decision, failed, finished, model

MakeDesk = Callable[[FakeHandle], Desk]
ACCEPTED = Accepted(prompt_tokens=20, reused_tokens=0, context_tokens=4096)


def ask(desk: Desk, text: str) -> ChatSession:
    chat = desk.window.chat
    chat.composer.edit.setPlainText(text)
    chat.composer.send()
    return chat.session


def shown_text(desk: Desk) -> str:
    transcript = desk.window.chat.transcript
    transcript.flush()
    return transcript.message(desk.window.chat.session.turns[-1].id).text


def wait_stored(qtbot: QtBot, desk: Desk, session: ChatSession) -> str:
    qtbot.waitUntil(lambda: session.conversation is not None)
    assert session.conversation is not None
    return session.conversation


def test_an_answer_streams_and_is_stored(qtbot: QtBot, desk: Desk) -> None:
    session = ask(desk, "Where is the Eiffel Tower?")
    assert desk.window.chat.composer.button.text() == "Stop"
    (request,) = desk.handle.requests
    assert [(one.role, one.content) for one in request.messages] == [
        (Role.USER, "Where is the Eiffel Tower?")
    ]
    with qtbot.waitSignal(session.running_changed):
        desk.handle.emit(request.id, *answer("In Paris."))
    turn = session.turns[-1]
    assert (turn.content, turn.phase, turn.model) == ("In Paris. ", Phase.DONE, "small")
    data = desk.window.chat.transcript.message(turn.id)
    assert data.why == "why: chat · Everything else · 14 µs"
    assert "40.0 tokens/s · 2 tokens · context 22 / 4k" in data.footer
    conversation = wait_stored(qtbot, desk, session)
    stored: list[object] = []
    desk.history.turns(conversation, stored.extend)
    qtbot.waitUntil(lambda: len(stored) == 2)
    assert [(one.role, one.content) for one in stored] == [  # type: ignore[attr-defined]
        (Role.USER, "Where is the Eiffel Tower?"),
        (Role.ASSISTANT, "In Paris. "),
    ]


def test_the_second_question_sends_the_history(qtbot: QtBot, make_desk: MakeDesk) -> None:
    desk = make_desk(FakeHandle(model("small"), script=lambda request: answer("Yes.")))
    session = ask(desk, "one")
    qtbot.waitUntil(lambda: not session.running)
    ask(desk, "two")
    qtbot.waitUntil(lambda: not session.running)
    contents = [one.content for one in desk.handle.requests[1].messages]
    assert contents == ["one", "Yes. ", "two"]


def test_two_chats_stream_side_by_side(qtbot: QtBot, desk: Desk) -> None:
    chat = desk.window.chat
    first = ask(desk, "first")
    conversation = wait_stored(qtbot, desk, first)
    chat.new_chat()
    second = ask(desk, "second")
    assert second is not first
    one, two = desk.handle.requests
    with qtbot.waitSignals([first.streamed, second.streamed]):
        desk.handle.emit(one.id, Routed(decision=decision()), ACCEPTED, Delta(text="alpha "))
        desk.handle.emit(two.id, Routed(decision=decision()), ACCEPTED, Delta(text="beta "))
    assert shown_text(desk) == "beta "
    chat.open_chat(conversation)
    assert chat.session is first
    assert shown_text(desk) == "alpha "
    assert chat.composer.button.text() == "Stop"
    with qtbot.waitSignals([first.streamed, second.streamed]):
        desk.handle.emit(one.id, Delta(text="gamma "))
        desk.handle.emit(two.id, Delta(text="delta "))
    assert shown_text(desk) == "alpha gamma "
    with qtbot.waitSignals([first.running_changed, second.running_changed]):
        desk.handle.emit(one.id, finished(2))
        desk.handle.emit(two.id, finished(2))
    assert (first.turns[-1].content, second.turns[-1].content) == ("alpha gamma ", "beta delta ")


def test_stop_keeps_the_text(qtbot: QtBot, desk: Desk) -> None:
    session = ask(desk, "go on for ever")
    (request,) = desk.handle.requests
    with qtbot.waitSignal(session.streamed):
        desk.handle.emit(request.id, Routed(decision=decision()), ACCEPTED, Delta(text="Once "))
    with qtbot.waitSignal(session.running_changed):
        qtbot.keyClick(desk.window, Qt.Key.Key_Escape)
    assert desk.handle.cancelled == [request.id]
    turn = session.turns[-1]
    assert (turn.content, turn.phase) == ("Once ", Phase.STOPPED)
    assert desk.window.chat.composer.button.text() == "Send"


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Queued(position=3), "In the queue, place 3"),
        (Loading(model="small", progress=0.62), "Loading small… 62 %"),
        (Prefill(done=50, total=200), "Reading the prompt… 25 %"),
    ],
)
def test_waiting_says_what_for(qtbot: QtBot, desk: Desk, event: RequestEvent, text: str) -> None:
    session = ask(desk, "hello")
    assert status_text(session.turns[-1]) == "Choosing a model…"
    with qtbot.waitSignal(session.changed):
        desk.handle.emit(desk.handle.requests[0].id, event)
    assert desk.window.chat.transcript.message(session.turns[-1].id).status == text


def test_an_error_is_shown_inline_and_retry_asks_again(qtbot: QtBot, desk: Desk) -> None:
    session = ask(desk, "hello")
    with qtbot.waitSignal(session.running_changed):
        desk.handle.emit(
            desk.handle.requests[0].id,
            Routed(decision=decision()),
            ACCEPTED,
            Delta(text="Hel"),
            failed(ErrorCode.WORKER_CRASHED, "The engine of small crashed."),
        )
    chat = desk.window.chat
    data = chat.transcript.message(session.turns[-1].id)
    assert (data.state, data.error, data.text) == ("error", "The engine of small crashed.", "Hel")
    chat.transcript.retry_requested.emit(session.turns[-1].id)
    assert [one.content for one in desk.handle.requests[1].messages] == ["hello"]
    with qtbot.waitSignal(session.running_changed):
        desk.handle.emit(desk.handle.requests[1].id, *answer("Hello!"))
    assert [turn.content for turn in session.turns] == ["hello", "Hello! "]
    assert chat.transcript.message(session.turns[-1].id).state == "complete"


def overflowing(limit: int) -> Callable[[ChatRequest], list[RequestEvent]]:
    """An engine whose context holds `limit` characters."""

    def script(request: ChatRequest) -> list[RequestEvent]:
        size = sum(len(message.content) for message in request.messages)
        if size > limit:
            return [Routed(decision=decision()), failed(ErrorCode.CONTEXT_LENGTH_EXCEEDED, "Too long.")]
        return answer("Fine.", prompt_tokens=size)

    return script


def test_overflow_offers_to_drop_the_oldest_turns_and_says_which(qtbot: QtBot, make_desk: MakeDesk) -> None:
    desk = make_desk(FakeHandle(model("small"), script=overflowing(100)))
    session = desk.window.chat.session
    for letter in "abc":
        ask(desk, letter * 40)
        qtbot.waitUntil(lambda: not session.running)
    chat = desk.window.chat
    assert session.turns[-1].phase is Phase.FAILED
    assert not chat.overflow.isHidden()
    chat.overflow.drop_wanted.emit()
    qtbot.waitUntil(lambda: not session.running and session.turns[-1].phase is Phase.DONE)
    sent = [one.content for one in desk.handle.requests[-1].messages]
    assert sent[-1] == "c" * 40
    assert "a" * 40 not in sent
    assert session.turns[0].left_out
    assert not chat.overflow.isHidden()
    assert "aaaa" in chat.overflow._text.text()


def test_a_single_message_that_is_too_long_offers_a_new_chat_only(qtbot: QtBot, make_desk: MakeDesk) -> None:
    desk = make_desk(FakeHandle(model("small"), script=overflowing(10)))
    session = ask(desk, "far too long a message")
    qtbot.waitUntil(lambda: not session.running)
    chat = desk.window.chat
    assert not chat.overflow.isHidden()
    assert chat.overflow._drop.isHidden()
    chat.overflow.new_wanted.emit()
    assert chat.session is not session
    assert chat.overflow.isHidden()


def test_delete_with_undo_and_rename(qtbot: QtBot, make_desk: MakeDesk) -> None:
    desk = make_desk(FakeHandle(model("small"), script=lambda request: answer("Yes.")))
    chat = desk.window.chat
    session = ask(desk, "keep me")
    conversation = wait_stored(qtbot, desk, session)
    qtbot.waitUntil(lambda: not session.running)
    listed = chat.list.model
    assert listed.setData(listed.index(listed.row_of(conversation)), "A better name")
    assert session.title == "A better name"
    chat.list.view.delete_wanted.emit(conversation)
    assert listed.row_of(conversation) == -1
    assert not chat.list.undo_bar.isHidden()
    assert chat.session.turns == []
    chat.list.undo_bar.undone.emit(conversation)
    assert listed.row_of(conversation) > 0
    assert chat.session.conversation == conversation, "it was open, so it is open again"
    qtbot.waitUntil(lambda: chat.session.loaded)
    assert [turn.content for turn in chat.session.turns] == ["keep me", "Yes. "]


def test_ten_thousand_events_reach_the_window_in_few_batches(qtbot: QtBot, desk: Desk) -> None:
    session = ask(desk, "count")
    batches: list[str] = []
    session.streamed.connect(lambda _turn, text: batches.append(text))
    with qtbot.waitSignal(session.running_changed, timeout=20_000):
        deltas = [Delta(text="x") for _ in range(10_000)]
        desk.handle.emit(desk.handle.requests[0].id, ACCEPTED, *deltas, finished(10_000))
    assert len("".join(batches)) == 10_000
    assert len(batches) < 500


def stored_chats(qtbot: QtBot, desk: Desk, count: int) -> list[str]:
    """Chats on disk that this window has not opened."""

    def work() -> list[str]:
        store = desk.history._opened()
        ids = [store.create(f"chat {number}").id for number in range(count)]
        for one in ids:
            for role, text in ((Role.USER, "before"), (Role.ASSISTANT, "Yes.")):
                store.put(StoredMessage(conversation_id=one, role=role, content=text))
        return ids

    made: list[str] = []
    desk.bridge.background(work, made.extend)
    qtbot.waitUntil(lambda: len(made) == count)
    return made


def test_a_question_waits_until_its_chat_is_there(qtbot: QtBot, make_desk: MakeDesk) -> None:
    desk = make_desk(FakeHandle(model("small"), script=lambda request: answer("Indeed.")))
    chat = desk.window.chat
    (conversation,) = stored_chats(qtbot, desk, 1)
    gate = Event()
    desk.bridge.background(gate.wait)  # the disk is slow
    chat.open_chat(conversation)
    session = ask(desk, "and now?")
    session.send("nor this way")
    assert (desk.handle.requests, chat.composer.edit.toPlainText()) == ([], "and now?")
    assert not chat.composer.button.isEnabled()
    with qtbot.waitSignal(session.filled):
        gate.set()
    assert chat.composer.button.isEnabled()
    chat.composer.send()
    qtbot.waitUntil(lambda: not session.running)
    assert [one.content for one in desk.handle.requests[0].messages] == ["before", "Yes.", "and now?"]
    assert desk.handle.requests[0].conversation_id == conversation
    assert [turn.content for turn in session.turns] == ["before", "Yes.", "and now?", "Indeed. "]


def test_a_chat_that_could_not_be_read_is_read_anew(
    qtbot: QtBot, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = desk.window.chat
    (conversation,) = stored_chats(qtbot, desk, 1)
    with monkeypatch.context() as patch:
        patch.setattr(ConversationStore, "messages", refuse)
        with qtbot.waitSignal(desk.history.failed):
            chat.open_chat(conversation)
    chat.open_chat(conversation)
    qtbot.waitUntil(lambda: chat.session.loaded)
    assert len(chat.session.turns) == 2


def refuse(*_arguments: object) -> None:
    raise LayaError(ErrorCode.INTERNAL, "The disk is full.")


@pytest.mark.parametrize("method", ["create", "put"])
def test_what_could_not_be_written_is_written_with_the_next(
    qtbot: QtBot, desk: Desk, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ConversationStore, method, refuse)
        with qtbot.waitSignal(desk.history.failed):
            session = ask(desk, "hello")
    with qtbot.assertNotEmitted(desk.history.failed):
        desk.handle.emit(desk.handle.requests[0].id, *answer("Hello!"))
        conversation = wait_stored(qtbot, desk, session)
    stored: list[Turn] = []
    desk.history.turns(conversation, stored.extend)
    qtbot.waitUntil(lambda: bool(stored))
    assert [turn.content for turn in stored] == ["hello", "Hello! "]
    assert desk.window.chat.list.model.row_of(conversation) >= 0
    assert session.title == "hello"


def test_a_model_that_leaves_the_config_is_no_longer_chosen(qtbot: QtBot, make_desk: MakeDesk) -> None:
    desk = make_desk(FakeHandle(model("small"), model("big")))
    chat = desk.window.chat
    chat.composer.picker._pick("big")
    assert chat.session.model == "big"
    with qtbot.waitSignal(desk.bridge.models_changed):
        desk.handle.publish(ModelsChanged(models=(model("small"),)))
    assert chat.composer.picker.choice == AUTO_MODEL
    ask(desk, "hello")
    assert desk.handle.requests[0].model == AUTO_MODEL


def test_chats_that_rest_are_let_go(qtbot: QtBot, desk: Desk) -> None:
    chat = desk.window.chat
    running = ask(desk, "go on")
    first = wait_stored(qtbot, desk, running)
    others = stored_chats(qtbot, desk, 2 * KEPT)
    seen = []
    for one in others:
        chat.open_chat(one)
        qtbot.waitUntil(lambda: chat.session.loaded)
        seen.append(ref(chat.session))
    assert chat.sessions.open(first) is running
    QApplication.processEvents()
    gc.collect()
    assert len([one for one in seen if one() is not None]) == KEPT
    assert seen[-1]() is chat.session
    chat.open_chat(others[0])
    qtbot.waitUntil(lambda: len(chat.session.turns) == 2)
