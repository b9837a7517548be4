"""screenshots.py OUT_DIR: a picture of every page in both themes and languages, at 100 % and 200 %."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from tests.gui.conftest import Desk

ROOT = Path(__file__).resolve().parents[2]
SCALES = (1, 2)


def main(argv: list[str]) -> int:
    if len(argv) == 2 and argv[0] == "--take":
        return take(Path(argv[1]))
    folder = Path(argv[0]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for scale in SCALES:
        environ = os.environ | {"QT_SCALE_FACTOR": str(scale), "QT_QPA_PLATFORM": "offscreen"}
        with tempfile.TemporaryDirectory() as home:
            environ["LAYA_HOME"] = home
            command = [sys.executable, __file__, "--take", str(folder)]
            subprocess.run(command, env=environ, check=True)
    print(f"{len(list(folder.glob('*.png')))} pictures are in {folder}")
    return 0


def take(folder: Path) -> int:
    """In a process of its own, because the scale belongs to the application object."""
    sys.path.insert(0, str(ROOT))
    from PySide6.QtWidgets import QApplication

    from laya_desktop.core.paths import Paths
    from laya_desktop.ui import i18n, theme
    from laya_desktop.ui.main_window import PAGES
    from tests.gui import demo
    from tests.gui.conftest import Desk
    from tests.gui.fake_handle import FakeHandle

    app = QApplication(sys.argv[:1])
    theme.apply(app, "light")
    suffix = f"{round(100 * app.devicePixelRatio())}"
    handle = FakeHandle(*demo.models(), config=demo.config(), script=demo.answer)
    desk = Desk(handle, Paths.default().data.parent)
    _fill(app, desk)
    for language in ("en", "zh_CN"):
        i18n.apply(app, language)
        for colours in ("light", "dark"):
            theme.apply(app, colours)
            for size, label in (((1180, 760), ""), ((640, 420), "-small")):
                desk.window.resize(*size)
                for page in PAGES:
                    desk.window.show_page(page)
                    _settle(app)
                    desk.window.grab().save(str(folder / f"{page}-{colours}-{language}-{suffix}{label}.png"))
    desk.close()
    return 0


def _fill(app: "QApplication", desk: "Desk") -> None:
    from laya_desktop.ui.services import ServerState
    from tests.gui import demo

    now = demo.now()
    desk.handle.publish(*demo.samples(now), *demo.notices(now), demo.queue())
    desk.state.set_server(ServerState(url="http://127.0.0.1:8080"))
    chat = desk.window.chat
    for text in demo.QUESTIONS:
        chat.new_chat()
        chat.composer.edit.setPlainText(text)
        chat.composer.send()
        _settle(app)


def _settle(app: "QApplication") -> None:
    """Let timers and the fake engine come to rest; pictures may wait, tests must not."""
    from PySide6.QtCore import QDeadlineTimer

    deadline = QDeadlineTimer(350)
    while not deadline.hasExpired():
        app.processEvents()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
