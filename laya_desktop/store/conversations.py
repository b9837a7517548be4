"""Chats on disk. What is saved here survives a crash of the app and, once a call returns, a power cut."""

import time
import uuid
from enum import StrEnum
from pathlib import Path
from sqlite3 import Connection, Row
from typing import TypeVar

import msgspec

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.types import Decision, Role, Timings, Usage
from laya_desktop.store.database import Database

_TITLE_CHARACTERS = 60
_TRASH_KEPT_S = 7 * 24 * 3600.0

_MIGRATIONS = (
    """
    CREATE TABLE conversations (
        id TEXT PRIMARY KEY,
        title TEXT NOT NULL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        deleted_at REAL
    );
    CREATE INDEX conversations_by_age ON conversations (updated_at DESC, id DESC)
        WHERE deleted_at IS NULL;
    CREATE TABLE messages (
        position INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        role TEXT NOT NULL,
        content TEXT NOT NULL,
        state TEXT NOT NULL,
        model TEXT,
        created_at REAL NOT NULL,
        decision TEXT,
        usage TEXT,
        timings TEXT,
        error TEXT
    );
    CREATE INDEX messages_by_conversation ON messages (conversation_id, position)
    """,
)


class MessageState(StrEnum):
    """`partial` is an answer that streams, or one that a crash or a stop ended."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    ERROR = "error"


def _new_id() -> str:
    return uuid.uuid4().hex


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A chat as the list shows it. Times are seconds since the epoch."""

    id: str
    title: str
    created_at: float
    updated_at: float


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A turn. `error` is a sentence, `created_at` seconds since the epoch."""

    conversation_id: str
    role: Role
    content: str
    state: MessageState = MessageState.COMPLETE
    model: str | None = None
    decision: Decision | None = None
    usage: Usage | None = None
    timings: Timings | None = None
    error: str | None = None
    id: str = msgspec.field(default_factory=_new_id)
    created_at: float = msgspec.field(default_factory=time.time)


_COLUMNS = StoredMessage.__struct_fields__
_KEPT = ("id", "conversation_id", "role", "created_at")
_PUT = (
    f"INSERT INTO messages ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
    " ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in _KEPT)
)


class ConversationStore:
    """All chats of one data folder.

    Every method blocks on the disk for milliseconds: call it from a pool thread, never from the UI thread.
    Calls from several threads wait for each other. Raises LayaError (internal, with a sentence) when the disk
    is full or the file cannot be written, and LayaError (invalid_request) for an id that does not exist.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file. Chats that were deleted a week ago go for good."""
        self._database = Database(path, _MIGRATIONS)
        with self._database.transaction() as db:
            db.execute("DELETE FROM conversations WHERE deleted_at < ?", (time.time() - _TRASH_KEPT_S,))

    @property
    def notice(self) -> str:
        """A sentence for the user when a damaged file was replaced at opening, else empty."""
        return self._database.notice

    def close(self) -> None:
        """Idempotent."""
        self._database.close()

    def list(self, limit: int = 50, before: Conversation | None = None) -> tuple[Conversation, ...]:
        """Up to `limit` chats, those last written to first; `before` is the last one of the page above."""
        after = "" if before is None else " AND (updated_at, id) < (?, ?)"
        place = () if before is None else (before.updated_at, before.id)
        rows = self._database.read(
            f"SELECT * FROM conversations WHERE deleted_at IS NULL{after}"
            " ORDER BY updated_at DESC, id DESC LIMIT ?",
            (*place, limit),
        )
        return tuple(_conversation(row) for row in rows)

    def create(self, title: str = "") -> Conversation:
        """A new chat. Without a title it gets that of its first user message."""
        now = time.time()
        fresh = Conversation(id=_new_id(), title=_clean(title), created_at=now, updated_at=now)
        with self._database.transaction() as db:
            db.execute(
                "INSERT INTO conversations (id, title, created_at, updated_at) VALUES (?, ?, ?, ?)",
                (fresh.id, fresh.title, now, now),
            )
        return fresh

    def get(self, conversation_id: str) -> Conversation:
        rows = self._database.read(
            "SELECT * FROM conversations WHERE id = ? AND deleted_at IS NULL", (conversation_id,)
        )
        if not rows:
            raise _gone()
        return _conversation(rows[0])

    def rename(self, conversation_id: str, title: str) -> None:
        with self._database.transaction() as db:
            _change(db, "UPDATE conversations SET title = ? WHERE id = ?", _clean(title), conversation_id)

    def delete(self, conversation_id: str) -> Conversation:
        """Take a chat out of the list; give what is returned to `restore` to undo it."""
        conversation = self.get(conversation_id)
        with self._database.transaction() as db:
            _change(db, "UPDATE conversations SET deleted_at = ? WHERE id = ?", time.time(), conversation_id)
        return conversation

    def restore(self, conversation: Conversation) -> None:
        """Undo `delete`, at the same place in the list. Possible for a week."""
        with self._database.transaction() as db:
            _change(db, "UPDATE conversations SET deleted_at = NULL WHERE id = ?", conversation.id)

    def messages(self, conversation_id: str) -> tuple[StoredMessage, ...]:
        """Every turn, in the order in which they were added."""
        rows = self._database.read(
            "SELECT * FROM messages WHERE conversation_id = ? ORDER BY position", (conversation_id,)
        )
        return tuple(_message(row) for row in rows)

    def put(self, message: StoredMessage) -> None:
        """Add a turn at the end of its chat, which becomes the newest; if its id is known, replace it there.
        While an answer streams, call this about once a second with `partial`."""
        values = [_plain(getattr(message, name)) for name in _COLUMNS]
        with self._database.transaction() as db:
            _change(
                db,
                "UPDATE conversations SET updated_at ="
                " MAX(updated_at, COALESCE((SELECT created_at FROM messages WHERE id = ?), ?)) WHERE id = ?",
                message.id,
                message.created_at,
                message.conversation_id,
            )
            db.execute(_PUT, values)
            if message.role is Role.USER:
                db.execute(
                    "UPDATE conversations SET title = ? WHERE id = ? AND title = ''",
                    (title_of(message.content), message.conversation_id),
                )


def title_of(text: str) -> str:
    """A title from a message: its first line with words in it, cut at a word."""
    line = next((cleaned for line in text.splitlines() if (cleaned := _clean(line))), "")
    if len(line) <= _TITLE_CHARACTERS:
        return line
    head = line[: _TITLE_CHARACTERS - 1]
    whole_words = head[: head.rfind(" ")] if " " in head[_TITLE_CHARACTERS // 2 :] else head
    return whole_words.rstrip() + "…"


def _clean(title: str) -> str:
    """One line without control characters."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in title).split())


def _change(db: Connection, sql: str, *values: object) -> None:
    """Run an UPDATE that must find its row."""
    if db.execute(sql, values).rowcount == 0:
        raise _gone()


def _gone() -> LayaError:
    return LayaError(ErrorCode.INVALID_REQUEST, "This chat no longer exists.")


def _plain(value: object) -> object:
    """A value as SQLite takes it."""
    if isinstance(value, msgspec.Struct):
        return msgspec.json.encode(value).decode()
    if isinstance(value, str):  # half characters cannot be stored
        return value.encode("utf-8", "replace").decode()
    return value


_T = TypeVar("_T")


def _decoded(kind: type[_T], text: str | None) -> _T | None:
    """A stored value; None if another version wrote it in a form unknown to us. The chat still opens."""
    try:
        return None if text is None else msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError:
        return None


def _conversation(row: Row) -> Conversation:
    return Conversation(
        id=row["id"],
        title=row["title"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def _message(row: Row) -> StoredMessage:
    return StoredMessage(
        id=row["id"],
        conversation_id=row["conversation_id"],
        role=Role(row["role"]),
        content=row["content"],
        state=MessageState(row["state"]),
        model=row["model"],
        created_at=row["created_at"],
        decision=_decoded(Decision, row["decision"]),
        usage=_decoded(Usage, row["usage"]),
        timings=_decoded(Timings, row["timings"]),
        error=row["error"],
    )
