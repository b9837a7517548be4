"""Whether a window can be opened at all, asked before Qt is imported: Qt aborts the process where it cannot.

Imports neither Qt nor anything else of ours.
"""

import ctypes
import os
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path

NO_DISPLAY = "no display; use laya-desktop serve"

_XCB_PACKAGES = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}


def problem(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str:
    """One line that says why no window can be opened; empty if it can."""
    if platform != "linux":
        return ""
    plugin = environ.get("QT_QPA_PLATFORM", "").split(":")[0]
    if plugin and plugin != "xcb":
        return ""
    wayland, x11 = bool(environ.get("WAYLAND_DISPLAY")), bool(environ.get("DISPLAY"))
    if not plugin and not wayland and not x11:
        return NO_DISPLAY
    if wayland and not plugin:
        return ""
    missing = [package for library, package in _XCB_PACKAGES.items() if not _loads(library)]
    if missing:
        return f"Qt needs system libraries that are missing; in Debian's names: {' '.join(missing)}"
    if not _x11_answers():
        return f"no X11 server answers at DISPLAY={environ.get('DISPLAY', '')}; use laya-desktop serve"
    return ""


def prefer_ibus(environ: MutableMapping[str, str], plugins: Path) -> None:
    """Speak ibus's protocol to fcitx5 where its own Qt plugin is absent: Qt's wheels do not bring it."""
    if environ.get("QT_IM_MODULE") in ("fcitx", "fcitx5"):
        folder = plugins / "platforminputcontexts"
        if not any(folder.glob("*fcitx*")):
            environ["QT_IM_MODULE"] = "ibus"


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _x11_answers() -> bool:
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return True
    xcb.xcb_connect.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(xcb.xcb_connect(None, None))
    answers = xcb.xcb_connection_has_error(connection) == 0
    xcb.xcb_disconnect(connection)
    return answers
