"""The real app in a process of its own: it starts, answers, and leaves nothing behind."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from laya_desktop.core.paths import Paths


def environ(home: Path) -> dict[str, str]:
    return os.environ | {"LAYA_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_quits_like_closing_the_window(own_home: Path, number: signal.Signals) -> None:
    paths = Paths.below(own_home).create()
    paths.config_file.write_text("server: {port: 0}\n")
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from PySide6.QtCore import QTimer\n"
        "from laya_desktop.app import DesktopApp\n"
        "from laya_desktop.core.paths import Paths\n"
        "paths = Paths.default()\n"
        "app = DesktopApp(paths, paths.config_file)\n"
        "app._state.server_changed.connect(lambda: print(app._state.server.url, flush=True))\n"
        "sys.exit(app.run())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environ(own_home), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("http://127.0.0.1:")
    process.send_signal(number)
    assert process.wait(20) == 0
    process.stdout.close()


@pytest.mark.model
@pytest.mark.slow
def test_smoke_answers(own_home: Path, starter_model: Path) -> None:
    paths = Paths.below(own_home).create()
    shutil.copy(starter_model, paths.models / "SmolLM2-135M-Instruct.Q4_1.gguf")
    paths.config_file.write_text("server: {port: 0}\n")
    result = subprocess.run(
        [sys.executable, "-m", "laya_desktop", "--smoke"],
        env=environ(own_home),
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert result.returncode == 0, result.stderr
    assert "Paris" in result.stdout
    assert "tokens/s" in result.stdout


def test_smoke_without_a_model_says_so(own_home: Path) -> None:
    paths = Paths.below(own_home).create()
    paths.config_file.write_text("server: {port: 0}\n")
    result = subprocess.run(
        [sys.executable, "-m", "laya_desktop", "--smoke"],
        env=environ(own_home),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1
    assert "there is no model" in result.stderr
