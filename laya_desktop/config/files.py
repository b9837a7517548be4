"""Reading files that a user named: a pipe, a device or a huge file must not keep us for ever."""

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
