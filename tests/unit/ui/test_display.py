"""GUI-04: what is said before Qt would abort."""

import subprocess
import sys
from pathlib import Path

import pytest

from laya_desktop.ui.platform import display


def test_no_display_is_one_line() -> None:
    assert display.problem({}, "linux") == "no display; use laya-desktop serve"


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_other_systems_always_have_one(platform: str) -> None:
    assert display.problem({}, platform) == ""


def test_another_platform_plugin_needs_no_display() -> None:
    assert display.problem({"QT_QPA_PLATFORM": "offscreen"}, "linux") == ""
    assert display.problem({"WAYLAND_DISPLAY": "wayland-0"}, "linux") == ""


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "_loads", lambda library: library != "libxcb-cursor.so.0")
    assert display.problem({"DISPLAY": ":0"}, "linux").endswith("in Debian's names: libxcb-cursor0")


def test_fcitx_without_its_plugin_speaks_ibus(tmp_path: Path) -> None:
    environ = {"QT_IM_MODULE": "fcitx"}
    display.prefer_ibus(environ, tmp_path)
    assert environ["QT_IM_MODULE"] == "ibus"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a display")
def test_the_app_exits_with_2_without_a_display() -> None:
    code = "from laya_desktop.app import main; raise SystemExit(main())"
    result = subprocess.run([sys.executable, "-c", code], env={}, capture_output=True, text=True, timeout=30)
    assert (result.returncode, result.stderr) == (2, "no display; use laya-desktop serve\n")


def test_starting_does_not_import_what_comes_later() -> None:
    code = (
        "import sys\n"
        "import laya_desktop.ui.main_window, laya_desktop.ui.bridge, laya_desktop.app\n"
        "late = {'numpy', 'pyqtgraph', 'pygments', 'uvicorn', 'starlette', 'ruamel.yaml', 'llama_cpp'}\n"
        "print(sorted(late & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.stdout == "[]\n", result.stderr
