"""The system libraries that Qt needs on Linux, and the command that installs those that are missing."""

import ctypes
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from devtools.console import DevError


class Library(NamedTuple):
    """A shared library and the package that brings it, by package manager."""

    file: str
    apt: str
    dnf: str
    pacman: str


ALWAYS = (
    Library("libEGL.so.1", "libegl1", "libglvnd-egl", "libglvnd"),
    Library("libGL.so.1", "libgl1", "libglvnd-glx", "libglvnd"),
    Library("libxkbcommon.so.0", "libxkbcommon0", "libxkbcommon", "libxkbcommon"),
    Library("libdbus-1.so.3", "libdbus-1-3", "dbus-libs", "dbus"),
    Library("libfontconfig.so.1", "libfontconfig1", "fontconfig", "fontconfig"),
    Library("libglib-2.0.so.0", "libglib2.0-0", "glib2", "glib2"),
)
X11 = (
    Library("libxcb-cursor.so.0", "libxcb-cursor0", "xcb-util-cursor", "xcb-util-cursor"),
    Library("libxcb-icccm.so.4", "libxcb-icccm4", "xcb-util-wm", "xcb-util-wm"),
    Library("libxcb-keysyms.so.1", "libxcb-keysyms1", "xcb-util-keysyms", "xcb-util-keysyms"),
    Library("libxcb-shape.so.0", "libxcb-shape0", "libxcb", "libxcb"),
    Library("libxkbcommon-x11.so.0", "libxkbcommon-x11-0", "libxkbcommon-x11", "libxkbcommon-x11"),
)

_COMMANDS = {
    "apt": ("apt-get", "sudo apt install"),
    "dnf": ("dnf", "sudo dnf install"),
    "pacman": ("pacman", "sudo pacman -S"),
}


def missing(libraries: Iterable[Library], load: Callable[[str], object] = ctypes.CDLL) -> list[Library]:
    """Those that the loader does not find."""
    return [library for library in libraries if not _loads(library.file, load)]


def _loads(file: str, load: Callable[[str], object]) -> bool:
    try:
        load(file)
    except OSError:
        return False
    return True


def advice(absent: Sequence[Library], which: Callable[[str], str | None] = shutil.which) -> str:
    """One sentence: what is missing, and how to install it here."""
    files = ", ".join(library.file for library in absent)
    for manager, (program, command) in _COMMANDS.items():
        if which(program):
            packages = " ".join(dict.fromkeys(str(getattr(library, manager)) for library in absent))
            return f"Qt needs system libraries that are missing ({files}). Install them: {command} {packages}"
    return f"Qt needs system libraries that are missing: {files}. Install the packages that bring them."


def require(environ: Mapping[str, str], *, window: bool) -> None:
    """Raises DevError if Qt could not start here; `window` is false for what needs no display."""
    if sys.platform != "linux":
        return
    own_platform = environ.get("QT_QPA_PLATFORM", "")
    needs_display = window and not own_platform
    x11 = own_platform == "xcb" or (needs_display and not environ.get("WAYLAND_DISPLAY"))
    absent = missing(ALWAYS + X11 if x11 else ALWAYS)
    if absent:
        raise DevError(advice(absent))
    if needs_display and not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        raise DevError(
            "There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set). Call this from a desktop "
            "session; “run --smoke” works without one."
        )
