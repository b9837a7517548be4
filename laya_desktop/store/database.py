"""One SQLite file: opened, checked, migrated, backed up, and set aside when it is damaged."""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from laya_desktop.core.errors import ErrorCode, LayaError

_BUSY_TIMEOUT_S = 5.0
_BACKUP_EVERY_S = 24 * 3600.0
_SIDE_FILES = ("-wal", "-shm", "-journal")

_SENTENCES = {
    sqlite3.SQLITE_FULL: ("The disk is full.", "Free some space, then try again."),
    sqlite3.SQLITE_READONLY: ("{file} cannot be written.", "Check the permissions of its folder."),
    sqlite3.SQLITE_CANTOPEN: ("{file} cannot be opened.", "Check the permissions of its folder."),
    sqlite3.SQLITE_BUSY: ("{file} is in use by another program.", "Close that one, then try again."),
    sqlite3.SQLITE_IOERR: ("{file} cannot be read or written.", "Check the disk and the space on it."),
    sqlite3.SQLITE_CORRUPT: ("{file} is damaged.", "Start the app again to repair it."),
    sqlite3.SQLITE_NOTADB: ("{file} is damaged.", "Start the app again to repair it."),
}


class Database:
    """A connection that any thread may use, one at a time: `transaction` holds a lock.

    `notice` is a sentence for the user when a damaged file was replaced, else empty. Every failure is a
    LayaError (internal) with a sentence; what was committed before it is on disk.
    """

    def __init__(self, path: Path, migrations: Sequence[str]) -> None:
        """Open or create `path`. Entry n of `migrations` is SQL that leads from version n to n + 1.

        A damaged file is renamed to ``*.corrupt-<time>``; the last backup takes its place, or an empty file.
        """
        self.path = path
        self.notice = ""
        self._lock = threading.RLock()
        self._backup = path.with_name(f"{path.stem}.backup{path.suffix}")
        with self._sentences():
            self._connection = self._open_or_replace()
        try:
            with self._sentences():
                self._migrate(migrations)
        except BaseException:
            self._connection.close()
            raise

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything in it happens, or nothing."""
        with self._lock, self._sentences(), self._connection:
            yield self._connection

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[sqlite3.Row]:
        """All rows of a query."""
        with self._lock, self._sentences():
            return self._connection.execute(sql, parameters).fetchall()

    def close(self) -> None:
        """Idempotent; nothing else may be called afterwards."""
        with self._lock, self._sentences():
            self._connection.close()

    def _open_or_replace(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # An empty file is what some file systems leave of a new one after a power cut.
            if self._backup.exists() and self.path.exists() and self.path.stat().st_size == 0:
                raise sqlite3.DatabaseError("the file is empty")
            return _connect(self.path)
        except sqlite3.OperationalError:  # it cannot be reached; that says nothing about its content
            raise
        except sqlite3.DatabaseError:
            self._set_aside()
            return _connect(self.path)

    def _set_aside(self) -> None:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        kept = _unused(self.path.with_name(f"{self.path.name}.corrupt-{stamp}"))
        self.path.rename(kept)
        for suffix in _SIDE_FILES:  # a journal of the damaged file would be played into the new one
            with contextlib.suppress(FileNotFoundError):
                self.path.with_name(self.path.name + suffix).rename(kept.with_name(kept.name + suffix))
        restored = self._restore_backup()
        self.notice = f"{self.path.name} was damaged and is kept as {kept.name}. " + (
            f"Its backup of {restored} is used instead." if restored else "A new one was started."
        )

    def _restore_backup(self) -> str:
        """The backup's day and hour; empty if there is no good one."""
        if not self._backup.exists():
            return ""
        try:
            with contextlib.closing(_connect(self._backup)) as good:
                _copy(good, self.path)
        except sqlite3.DatabaseError:
            return ""
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self._backup.stat().st_mtime))

    def _migrate(self, migrations: Sequence[str]) -> None:
        version: int = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version > len(migrations):
            raise LayaError(
                ErrorCode.INTERNAL,
                f"{self.path.name} was written by a newer version of the app.",
                hint="Install that version to use it.",
            )
        if version:
            self._back_up_if_due()
        for number, script in enumerate(migrations[version:], version + 1):
            self._connection.executescript(f"BEGIN; {script}; PRAGMA user_version = {number}; COMMIT;")

    def _back_up_if_due(self) -> None:
        age = time.time() - self._backup.stat().st_mtime if self._backup.exists() else _BACKUP_EVERY_S
        if 0 <= age < _BACKUP_EVERY_S:
            return
        # Without room for a backup the chats still open.
        with contextlib.suppress(sqlite3.Error, OSError):
            _copy(self._connection, self._backup)

    @contextlib.contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turn what SQLite and the system say into LayaError."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise _explained(error, self.path) from error


def _connect(path: Path) -> sqlite3.Connection:
    """A connection to a file that was checked. Raises DatabaseError, and not its subclass OperationalError,
    if the content is damaged."""
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("the check failed")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # a committed message survives a power cut
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _copy(source: sqlite3.Connection, target: Path) -> None:
    """Write a consistent copy that replaces `target` at once."""
    fresh = target.with_name(f".{target.name}.new")
    fresh.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(fresh)) as copy:
        source.backup(copy)
    fd = os.open(fresh, os.O_RDWR)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    fresh.replace(target)


def _unused(path: Path) -> Path:
    candidates = [path, *(path.with_name(f"{path.name}-{number}") for number in range(2, 100))]
    return next(candidate for candidate in candidates if not candidate.exists())


def _explained(error: sqlite3.Error | OSError, path: Path) -> LayaError:
    # The low byte is the kind; the rest of the code tells which of many system calls failed.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    message, hint = _SENTENCES.get(
        code, ("{file} cannot be used: {error}.", "Check the disk and its folder.")
    )
    reason = getattr(error, "strerror", None) or error
    return LayaError(ErrorCode.INTERNAL, message.format(file=path, error=reason), hint=hint)
