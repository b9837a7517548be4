"""The config file of a running app: loading, noticing changes, and edits that keep the user's comments."""

import contextlib
import os
from pathlib import Path

from filelock import FileLock, Timeout

from laya_desktop.config.backup import Backup, damage
from laya_desktop.config.checks import Checked, check
from laya_desktop.config.files import read_file, replace_file
from laya_desktop.config.problems import Problem
from laya_desktop.config.reader import MAX_BYTES, Document, decode, encode, read
from laya_desktop.config.schema import Config
from laya_desktop.core.errors import ErrorCode, LayaError

_LOCK_TIMEOUT_S = 5.0

_Signature = tuple[int, int, int, int]


class ConfigStore:
    """The last good config and what is wrong with the file now.

    Use it from one thread at a time. `load` and `set` read and write the disk and may block; `poll` costs one
    stat. `path` None means no file: the defaults, which cannot be changed. `backups` is the folder where the
    last good content is kept for the next start.
    """

    def __init__(self, path: Path | None, backups: Path | None = None) -> None:
        self.path = path
        self._backup = Backup(backups, path) if path is not None and backups is not None else None
        self.config = Config()
        self.problems: tuple[Problem, ...] = ()
        self.notes: tuple[str, ...] = ()
        self._seen: _Signature | None = None
        self._has_loaded = False

    def load(self) -> bool:
        """Read the file. True if it is good and in effect now; otherwise the last good config stays and
        `problems` says why. A file that never existed means defaults; one that vanished is a problem."""
        if self.path is None:
            return True
        self._seen = _signature(self.path)
        data, checked = self._check_file(self.path)
        if data is not None and self._backup is not None:
            if not self._has_loaded:
                checked = self._recovered(self.path, self._backup, data, checked)
            if checked.config is not None and not checked.problems:
                self._backup.keep(data)
        self.problems = checked.problems
        if checked.config is not None:
            self.config, self.notes, self._has_loaded = checked.config, checked.notes, self._seen is not None
        return checked.config is not None

    def _recovered(self, path: Path, backup: Backup, data: bytes, checked: Checked) -> Checked:
        """What is in effect at a start, where the last good content stands in for a file that is broken."""
        kept = backup.content()
        before = check(read(kept, path.name), path.resolve().parent) if kept else Checked(None)
        if not kept or before.config is None:
            return checked
        if cause := damage(data):
            with contextlib.suppress(OSError):
                aside = backup.restore(kept)
                self._seen = _signature(path)
                hint = f"It is kept as {aside.name}; the last good version took its place."
                restored = Problem(path.name, f"the file was damaged: {cause}", hint=hint)
                return Checked(before.config, (restored,), before.notes)
        if checked.config is None:
            self.config, self._has_loaded = before.config, True
        return checked

    def poll(self) -> bool:
        """Whether the file on disk is another than at the last `load`; also true after `set`."""
        return self.path is not None and _signature(self.path) != self._seen

    def set(self, key: str, value: object) -> None:
        """Change one setting in the file, such as ``set("ui.theme", "dark")`` or
        ``set("models[0].priority", 2)``, and make the result the current config.

        Comments and order survive; the file is replaced atomically and created when missing. Raises LayaError
        (invalid_request) if the value is not valid, the file is broken or it cannot be written; then nothing
        has changed.
        """
        if self.path is None:
            raise _refusal("There is no config file to change.", key)
        target = Path(os.path.realpath(self.path))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(target.with_name(f".{target.name}.lock"), timeout=_LOCK_TIMEOUT_S):
                self._set(target, key, value)
        except Timeout as error:
            raise _refusal(f"{target} is being changed by another program.", key, "Try again.") from error
        except OSError as error:
            reason = error.strerror or error
            hint = "Check the folder's permissions and the space on the disk."
            raise _refusal(f"{target} cannot be written: {reason}.", key, hint) from error

    def _set(self, target: Path, key: str, value: object) -> None:
        from laya_desktop.config.editing import edited, parse_key, replaced  # ruamel.yaml: on first use

        data = read_file(target, MAX_BYTES) if target.exists() else b""
        before = read(data, target.name)
        broken = check(before, target.parent).problems
        if broken:
            raise _refusal(
                f"{target.name} has a problem: {broken[0]}",
                key,
                "Correct the file first, then change the setting.",
            )
        path = parse_key(key)
        wanted = check(Document(target.name, replaced(before.tree, path, value)), target.parent)
        if wanted.config is None:
            raise _refusal(" ".join(problem.sentence() for problem in wanted.problems), key)
        after = encode(edited(decode(data), path, value), like=data)
        result = check(read(after, target.name), target.parent)
        if result.config != wanted.config:
            raise _refusal(
                f"{key} cannot be changed without changing something else in {target.name}.",
                key,
                "Change it in a text editor.",
            )
        replace_file(target, after)
        if self._backup is not None:
            self._backup.keep(after)
        self.config, self.notes, self.problems, self._has_loaded = result.config, result.notes, (), True

    def _check_file(self, path: Path) -> tuple[bytes | None, Checked]:
        """What the file holds, None if it cannot be read, and what that means."""
        folder = Path(os.path.realpath(path)).parent
        try:
            data = read_file(path, MAX_BYTES)
        except FileNotFoundError:
            if not self._has_loaded and not path.is_symlink():
                return None, Checked(Config())
            return None, Checked(None, (Problem(path.name, "the file is missing", hint="Restore it."),))
        except OSError as error:
            return None, Checked(None, (Problem(path.name, f"cannot be read: {error.strerror or error}"),))
        return data, check(read(data, path.name), folder)


def _signature(path: Path) -> _Signature | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _refusal(message: str, key: str, hint: str = "") -> LayaError:
    return LayaError(ErrorCode.INVALID_REQUEST, message, hint=hint, param=key)
