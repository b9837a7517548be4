"""A window over a fake engine."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from laya_desktop.core.paths import Paths
from laya_desktop.ui import i18n, theme
from laya_desktop.ui.bridge import Bridge
from laya_desktop.ui.chat.history import History
from laya_desktop.ui.main_window import MainWindow
from laya_desktop.ui.services import AppState, EngineState, Services
from laya_desktop.ui.session_log import SessionLog
from tests.gui.fake_handle import FakeHandle, model


class Desk:
    """The parts of a running app."""

    def __init__(self, handle: FakeHandle, home: Path) -> None:
        paths = Paths.below(home).create()
        self.handle = handle
        self.bridge = Bridge(handle)  # type: ignore[arg-type]
        self.history = History(self.bridge, paths.conversations)
        self.state = AppState()
        self.services = Services(
            self.bridge, self.history, paths, paths.config_file, self.state, SessionLog(self.bridge)
        )
        self.window = MainWindow(self.services)
        self.window.show()
        self.state.set_engine(EngineState.READY)

    def close(self) -> None:
        self.window.close()
        self.history.close()
        self.bridge.close()
        self.handle.stop()
        self.window.deleteLater()


@pytest.fixture(autouse=True)
def collector_in_this_thread() -> Iterator[None]:
    """As in the app (`ui/garbage.py`): no other thread may destroy widgets."""
    gc.disable()
    yield
    gc.collect()
    gc.enable()


@pytest.fixture
def make_desk(qapp: QApplication, own_home: Path) -> Iterator[Callable[[FakeHandle], Desk]]:
    theme.apply(qapp, "light")
    i18n.apply(qapp, "en")
    made: list[Desk] = []

    def make(handle: FakeHandle) -> Desk:
        made.append(Desk(handle, own_home))
        return made[-1]

    yield make
    for desk in made:
        desk.close()
    i18n.apply(qapp, "en")
    theme.apply(qapp, "light")


@pytest.fixture
def desk(make_desk: Callable[[FakeHandle], Desk]) -> Desk:
    """A window with one warm model; the test sends the events."""
    return make_desk(FakeHandle(model("small")))
