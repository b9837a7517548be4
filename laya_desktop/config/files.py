"""Reading files that a user named, where a pipe, a device or a huge file must not keep us for ever, and
replacing them whole."""

import os
import stat
from pathlib import Path


def read_file(path: Path, max_bytes: int) -> bytes:
    """The content of a regular file. Raises OSError; its `strerror` says what is wrong."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(0, "it is not a file")
    with path.open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(0, f"it is larger than {max_bytes:,} bytes")
    return data


def replace_file(target: Path, data: bytes) -> None:
    """Make `data` the content of `target`: after a crash or an error it has the old or the new content, never
    a mix. The file's mode is kept; a new file is readable by its owner only. Raises OSError."""
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
    fresh = target.with_name(f".{target.name}.new")
    fresh.unlink(missing_ok=True)  # left over by a process that was killed here
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.chmod(mode)
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
