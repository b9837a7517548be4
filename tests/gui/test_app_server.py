"""The HTTP server follows the config while the app runs, and ending the app leaves no step out."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from laya_desktop.app import DesktopApp
from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.paths import Paths
from laya_desktop.server.listener import Listener, PortTakenError
from laya_desktop.ui.services import EngineState
from tests.gui.fake_handle import FakeHandle, model


class Servers:
    """What the app opened and closed, in order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gate = Event()
        self.gate.set()
        self.taken: set[int] = set()

    async def open(self, _handle: object, host: str, port: int) -> "OneServer":
        self.gate.wait(5)
        if port in self.taken:
            raise PortTakenError(f"Port {port} is in use.", port + 1)
        self.log.append(f"open {port}")
        return OneServer(self, port)


class OneServer:
    def __init__(self, servers: Servers, port: int) -> None:
        self._servers, self._port = servers, port
        self.url = f"http://127.0.0.1:{port}"

    async def close(self, grace_s: float) -> None:
        self._servers.log.append(f"close {self._port}")


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    made = Servers()
    monkeypatch.setattr(Listener, "open", made.open)
    return made


@pytest.fixture
def handle() -> FakeHandle:
    return FakeHandle(model("small"))


@pytest.fixture
def app(
    qapp: QApplication, own_home: Path, handle: FakeHandle, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DesktopApp]:
    monkeypatch.setattr("laya_desktop.engine.handle.EngineHandle", lambda _store, _paths: handle)
    paths = Paths.below(own_home).create()
    app = DesktopApp(paths, paths.config_file)
    yield app
    app._stop()
    app.window.deleteLater()


@pytest.fixture
def settle(qtbot: QtBot, app: DesktopApp, handle: FakeHandle) -> Callable[[str, object], None]:
    """Change a setting and wait until it is in effect."""

    def change(key: str, value: object) -> None:
        with qtbot.waitSignal(app._bridge.config_applied):
            handle.set_config(key, value)

    return change


def start(qtbot: QtBot, app: DesktopApp) -> None:
    app._engine_ready()
    qtbot.waitUntil(lambda: app._state.server.url is not None)


def test_a_server_switched_off_while_it_opens_does_not_stay(
    qtbot: QtBot, app: DesktopApp, servers: Servers, settle: Callable[[str, object], None]
) -> None:
    app._state.set_engine(EngineState.READY)
    servers.gate.clear()
    app._serve()
    app._handle.config = app._handle.config.model_copy(  # type: ignore[misc]
        update={"server": app._handle.config.server.model_copy(update={"enabled": False})}
    )
    app._follow_config()
    servers.gate.set()
    qtbot.waitUntil(lambda: servers.log == ["open 8080", "close 8080"])
    assert app._listener is None
    assert app._state.server.url is None


def test_a_new_port_takes_effect_at_once(
    qtbot: QtBot, app: DesktopApp, servers: Servers, settle: Callable[[str, object], None]
) -> None:
    start(qtbot, app)
    settle("ui.theme", "dark")
    settle("server.port", 8090)
    qtbot.waitUntil(lambda: app._state.server.url == "http://127.0.0.1:8090")
    assert servers.log == ["open 8080", "close 8080", "open 8090"]
    settle("server.enabled", False)
    qtbot.waitUntil(lambda: servers.log[-1] == "close 8090")
    assert app._state.server.url is None


def test_the_free_port_that_is_offered_is_used(qtbot: QtBot, app: DesktopApp, servers: Servers) -> None:
    servers.taken.add(8080)
    app._engine_ready()
    qtbot.waitUntil(lambda: app._state.server.free_port == 8081)
    app.window.port_wanted.emit(8081)
    qtbot.waitUntil(lambda: app._state.server.url == "http://127.0.0.1:8081")
    assert app._bridge.config.server.port == 8081


def test_ending_goes_on_where_the_engine_is_gone(
    qtbot: QtBot, app: DesktopApp, servers: Servers, handle: FakeHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(qtbot, app)

    def gone(coroutine: Any) -> "Future[Any]":
        coroutine.close()
        raise LayaError(ErrorCode.ENGINE_STOPPED, "The engine is not running.")

    monkeypatch.setattr(handle, "run", gone)
    monkeypatch.setattr(app._history, "close", lambda: 1 / 0)
    app._stop()
    assert app._bridge._closed
    assert not handle._thread.is_alive()
