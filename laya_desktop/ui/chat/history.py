"""The stored chats as the window uses them: calls return at once, the worker thread touches the disk.

UI thread only, except where a comment says otherwise.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QObject, Signal

from laya_desktop.core.errors import ErrorCode, ErrorInfo
from laya_desktop.core.types import Role
from laya_desktop.store.conversations import Conversation, ConversationStore, MessageState, StoredMessage
from laya_desktop.ui.bridge import Bridge
from laya_desktop.ui.chat.chat_list import Entry
from laya_desktop.ui.chat.turn import Phase, Turn

if TYPE_CHECKING:
    from laya_desktop.ui.chat.session import ChatSession

PAGE: Final = 200

_STATES = {Phase.DONE: MessageState.COMPLETE, Phase.FAILED: MessageState.ERROR}
_PHASES = {
    MessageState.COMPLETE: Phase.DONE,
    MessageState.PARTIAL: Phase.STOPPED,
    MessageState.ERROR: Phase.FAILED,
}


class History(QObject):
    """`created(session)` when a new chat got its place on disk, `touched(id)` when a turn was added."""

    created = Signal(object)
    touched = Signal(str)
    notice = Signal(str)
    """A sentence when the file was damaged and replaced."""
    failed = Signal(object)
    """The `ErrorInfo` of something that could not be read or saved."""

    def __init__(self, bridge: Bridge, path: Path) -> None:
        super().__init__()
        self._bridge, self._path = bridge, path
        # Only the worker thread touches these three.
        self._store: ConversationStore | None = None
        self._last: Conversation | None = None
        self._deleted: dict[str, Conversation] = {}

    def page(self, *, first: bool, done: Callable[[list[Entry], bool], None]) -> None:
        """The first or the next page of the list, and whether it was the last."""

        def work() -> list[Conversation]:
            before = None if first else self._last
            found = self._opened().list(PAGE, before)
            self._last = found[-1] if found else before
            return found

        def deliver(found: list[Conversation]) -> None:
            done([Entry(one.id, one.title, one.updated_at) for one in found], len(found) < PAGE)

        self._run(work, deliver)

    def turns(self, conversation: str, done: Callable[[list[Turn]], None]) -> None:
        """All turns of a stored chat."""
        self._run(lambda: [_turn(one) for one in self._opened().messages(conversation)], done)

    def append(self, session: "ChatSession", turn: Turn) -> None:
        """Store a new turn; the first one of a session makes its chat."""
        turn.stored = True
        role, content, message_id = turn.role, turn.content, turn.id

        def work() -> Conversation | None:
            store, fresh = self._opened(), session.stored_as is None
            if session.stored_as is None:
                session.stored_as = store.create().id
            conversation = session.stored_as
            store.append(
                StoredMessage(conversation_id=conversation, role=role, content=content, id=message_id)
            )
            return store.get(conversation) if fresh else None

        def deliver(created: Conversation | None) -> None:
            if created is not None:
                session.conversation, session.title = created.id, created.title
                self.created.emit(session)
            elif session.conversation is not None:
                self.touched.emit(session.conversation)

        self._run(work, deliver)

    def put_answer(self, session: "ChatSession", turn: Turn) -> None:
        """Store an answer as far as it has come."""
        fresh, turn.stored = not turn.stored, True
        content, message_id = turn.content, turn.id
        state = _STATES.get(turn.phase, MessageState.PARTIAL)
        details: dict[str, Any] = {
            "model": turn.model or None,
            "decision": turn.decision,
            "usage": turn.usage,
            "timings": turn.timings,
            "error": turn.error.sentence() if turn.error is not None else None,
        }

        def work() -> None:
            conversation = session.stored_as
            if conversation is None:  # its first turn could not be stored
                return
            if not fresh:
                self._opened().update_content(message_id, content, state, **details)
                return
            self._opened().append(
                StoredMessage(
                    conversation_id=conversation,
                    role=Role.ASSISTANT,
                    content=content,
                    state=state,
                    id=message_id,
                    **details,
                )
            )

        self._run(work)

    def rename(self, conversation: str, title: str) -> None:
        self._run(lambda: self._opened().rename(conversation, title))

    def delete(self, conversation: str) -> None:
        """Take a chat out of the list; `restore` undoes it."""

        def work() -> None:
            self._deleted[conversation] = self._opened().delete(conversation)

        self._run(work)

    def restore(self, conversation: str) -> None:
        def work() -> None:
            deleted = self._deleted.pop(conversation, None)
            if deleted is not None:
                self._opened().restore(deleted)

        self._run(work)

    def close(self) -> None:
        """Close the file after all that was asked for."""

        def work() -> None:
            if self._store is not None:
                self._store.close()

        self._run(work)

    def _run(self, work: Callable[[], Any], done: Callable[[Any], None] | None = None) -> None:
        self._bridge.background(work, done, self.failed.emit)

    def _opened(self) -> ConversationStore:
        """Worker thread."""
        if self._store is None:
            self._store = ConversationStore(self._path)
            notice = self._store.notice
            if notice:
                self._bridge.post(lambda: self.notice.emit(notice))
        return self._store


def _turn(stored: StoredMessage) -> Turn:
    error = None
    if stored.state is MessageState.ERROR and stored.error:
        error = ErrorInfo(code=ErrorCode.INTERNAL, message=stored.error)
    return Turn(
        stored.role,
        stored.content,
        id=stored.id,
        stored=True,
        phase=_PHASES[stored.state],
        model=stored.model or "",
        decision=stored.decision,
        usage=stored.usage,
        timings=stored.timings,
        error=error,
    )
