"""Folders, files and environment variables that the scripts use, and locks between two of them."""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from devtools.console import say

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
CONSTRAINTS = ROOT / "packaging" / "constraints.txt"


def cache_dir(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Where wheels and models stay between checkouts: ``$LAYA_CACHE``, or the system's place for caches."""
    if own := environ.get("LAYA_CACHE"):
        return Path(own)
    if platform == "win32":
        local = environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "laya-desktop" / "Cache"
    if platform == "darwin":
        return Path.home() / "Library" / "Caches" / "laya-desktop"
    xdg = environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "laya-desktop"


def child_environ(**extra: str) -> dict[str, str]:
    """The environment of what runs in .venv: ours, without what would bring in another Python's modules."""
    environ = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    return environ | {"PYTHONUTF8": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"} | extra


@contextlib.contextmanager
def locked(path: Path, waiting_for: str) -> Iterator[None]:
    """Hold an exclusive lock on `path`. The system drops it when the process ends, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if not _try_lock(file):
            say(f"Waiting for {waiting_for} …")
            _lock(file)
        yield


if sys.platform == "win32":
    import msvcrt
    import time

    def _try_lock(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _lock(file: IO[bytes]) -> None:
        while not _try_lock(file):
            time.sleep(0.5)

else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)
