"""The stored chats as the window uses them: calls return at once, the worker thread touches the disk.

UI thread only, except where a comment says otherwise.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace
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

    def turns(
        self, conversation: str, done: Callable[[list[Turn]], None], failed: Callable[[], None] | None = None
    ) -> None:
        """All turns of a stored chat; `failed` is called if they cannot be read."""

        def tell(error: ErrorInfo) -> None:
            if failed is not None:
                failed()
            self.failed.emit(error)

        def work() -> list[Turn]:
            return [_turn(one) for one in self._opened().messages(conversation)]

        self._bridge.background(work, done, tell)

    def put(self, session: "ChatSession", turn: Turn) -> None:
        """Store a turn as far as it has come; the first one of a session makes its chat."""
        known, asks = session.conversation is not None, turn.role == Role.USER
        message = StoredMessage(
            conversation_id="",  # the worker thread knows it
            role=turn.role,
            content=turn.content,
            state=_STATES.get(turn.phase, MessageState.PARTIAL),
            id=turn.id,
            model=turn.model or None,
            decision=turn.decision,
            usage=turn.usage,
            timings=turn.timings,
            error=turn.error.sentence() if turn.error is not None else None,
        )

        def work() -> Conversation | None:
            # What could not be written before is written first: the disk may have room again.
            session.unwritten[message.id] = message
            store = self._opened()
            if session.stored_as is None:
                session.stored_as = store.create().id
            for one in list(session.unwritten.values()):
                store.put(replace(one, conversation_id=session.stored_as))
                del session.unwritten[one.id]
            return None if known else store.get(session.stored_as)

        def deliver(created: Conversation | None) -> None:
            if created is not None and session.conversation is None:
                session.conversation, session.title = created.id, created.title
                self.created.emit(session)
            elif asks and session.conversation is not None:
                self.touched.emit(session.conversation)

        self._run(work, deliver)

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
        phase=_PHASES[stored.state],
        model=stored.model or "",
        decision=stored.decision,
        usage=stored.usage,
        timings=stored.timings,
        error=error,
    )
