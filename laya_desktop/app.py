"""The composition root of the desktop app: the one module that knows every part."""

import contextlib
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from laya_desktop.ui.platform import display

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from laya_desktop.core.errors import ErrorInfo
    from laya_desktop.core.paths import Paths
    from laya_desktop.server.listener import Listener
    from laya_desktop.ui.services import ServerState

_log = logging.getLogger(__name__)


def main(config: Path | None = None, *, smoke: bool = False) -> int:
    """Open the window and run until it is closed. Returns the exit status: 2 where no window can be opened.

    `config` replaces the user's config file. `smoke` asks one question in the window, prints what came and
    quits; without a screen it does so offscreen.
    """
    if smoke and sys.platform == "linux" and not _has_screen():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    problem = display.problem()
    if problem:
        print(problem, file=sys.stderr)
        return 2
    try:
        import PySide6.QtWidgets  # noqa: F401
    except ImportError as error:
        print(f"Qt cannot be loaded: {error}", file=sys.stderr)
        return 2
    from laya_desktop.core.paths import Paths

    try:
        paths = Paths.default().create()
    except OSError as error:
        print(f"{error.filename or 'The data folder'} cannot be used: {error.strerror}.", file=sys.stderr)
        return 1
    return DesktopApp(paths, config or paths.config_file).run(smoke=smoke)


def _has_screen() -> bool:
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


class DesktopApp:
    """Builds the parts, starts them once the window is shown, ends them in the right order. UI thread."""

    def __init__(self, paths: "Paths", config: Path) -> None:
        self._app = _application()
        from laya_desktop.config.store import ConfigStore
        from laya_desktop.engine.handle import EngineHandle
        from laya_desktop.ui import i18n, theme
        from laya_desktop.ui.bridge import Bridge
        from laya_desktop.ui.chat.history import History
        from laya_desktop.ui.main_window import MainWindow
        from laya_desktop.ui.services import AppState, Services
        from laya_desktop.ui.session_log import SessionLog

        store = ConfigStore(config, paths.data)
        store.load()
        self._shown = store.config.ui
        theme.apply(self._app, self._shown.theme)
        i18n.apply(self._app, self._shown.language)
        self._handle = EngineHandle(store, paths)
        self._bridge = Bridge(self._handle)
        self._state = AppState()
        self._history = History(self._bridge, paths.conversations)
        self._services = Services(
            self._bridge, self._history, paths, config, self._state, SessionLog(self._bridge)
        )
        self._listener: Listener | None = None
        self._address: tuple[str, int] | None = None
        """Host and port that `_listener` was opened for, or that could not be opened."""
        self._opening = False
        self._exit_code = 0
        self.window = MainWindow(self._services)
        self.window.port_wanted.connect(self._use_port)
        self._bridge.config_applied.connect(self._follow_config)

    def run(self, *, smoke: bool = False) -> int:
        """Show the window, start the rest, and return when the window was closed."""
        from PySide6.QtCore import QTimer
        from qasync import QEventLoop

        from laya_desktop.ui.garbage import UiThreadCollector
        from laya_desktop.ui.interrupts import Interrupts

        # A busy UI thread must not keep the engine's thread waiting for the interpreter lock.
        sys.setswitchinterval(0.0005)
        interrupts, collector = Interrupts(self.window.close), UiThreadCollector()
        self.window.show()
        QTimer.singleShot(0, self._start_engine)
        runner = self._start_smoke() if smoke else None
        with QEventLoop(self._app) as loop:
            try:
                loop.run_forever()
            finally:
                del runner
                self._stop()
                interrupts.close()
                collector.close()
        return self._exit_code

    def _start_smoke(self) -> object:
        from laya_desktop.ui.smoke import Smoke

        return Smoke(self.window, self._services, self._quit)

    def _quit(self, code: int) -> None:
        self._exit_code = code
        self.window.close()

    def _start_engine(self) -> None:
        self._bridge.background(self._handle.start, lambda _none: self._engine_ready(), self._engine_failed)

    def _engine_ready(self) -> None:
        from laya_desktop.ui.services import EngineState

        self._state.set_engine(EngineState.READY)
        self._bridge.refresh()

    def _engine_failed(self, error: "ErrorInfo") -> None:
        from laya_desktop.ui.services import EngineState

        self._state.set_engine(EngineState.FAILED, error)

    # The server

    def _follow_config(self) -> None:
        """A new config took effect: show its theme and language, start, move or stop the server."""
        from laya_desktop.ui import i18n, theme

        ui = self._bridge.config.ui
        if ui.theme != self._shown.theme:
            theme.apply(self._app, ui.theme)
        if ui.language != self._shown.language:
            i18n.apply(self._app, ui.language)
        self._shown = ui
        self._serve()

    def _wanted_address(self) -> tuple[str, int] | None:
        """Where the config wants the server; None if it is off."""
        server = self._bridge.config.server
        return (server.host, server.port) if server.enabled else None

    def _serve(self) -> None:
        """Bring the server to where the config wants it. One that could not be opened is tried again."""
        from laya_desktop.ui.services import EngineState, ServerState

        wanted = self._wanted_address()
        if self._state.engine is not EngineState.READY or self._opening:
            return  # `_server_opened` looks again
        if wanted is not None and wanted == self._address and self._listener is not None:
            return
        self._close_server()
        if wanted is None:
            self._state.set_server(ServerState())
            return
        self._address, self._opening = wanted, True
        self._bridge.background(
            lambda: self._open_server(*wanted), self._server_opened, self._server_not_opened
        )

    def _open_server(self, host: str, port: int) -> "tuple[Listener | None, ServerState]":
        """Worker thread: importing the HTTP stack takes long."""
        from laya_desktop.server.listener import Listener, PortTakenError
        from laya_desktop.ui.services import ServerState

        try:
            listener = self._handle.run(Listener.open(self._handle, host, port)).result()
        except PortTakenError as error:
            return None, ServerState(problem=error.info.message, free_port=error.free_port)
        return listener, ServerState(url=listener.url)

    def _server_opened(self, opened: "tuple[Listener | None, ServerState]") -> None:
        self._opening = False
        self._listener, state = opened
        if self._wanted_address() == self._address:
            self._state.set_server(state)
        else:  # the config changed meanwhile
            self._serve()

    def _server_not_opened(self, error: "ErrorInfo") -> None:
        from laya_desktop.ui.services import ServerState

        self._server_opened((None, ServerState(problem=_worded(error))))

    def _use_port(self, port: int) -> None:
        """Serve on another port from now on, also after the next start."""
        self._bridge.set_config("server.port", port, self._port_refused)

    def _port_refused(self, error: "ErrorInfo") -> None:
        from laya_desktop.ui.services import ServerState

        self._state.set_server(ServerState(problem=_worded(error)))

    def _close_server(self) -> None:
        """Stop listening. The engine's loop does it before anything that it is asked for later."""
        listener, self._listener = self._listener, None
        self._address = None
        if listener is not None:
            from laya_desktop.core.errors import LayaError

            with contextlib.suppress(LayaError):  # an engine that is gone listens no more
                self._handle.run(listener.close(grace_s=0.5))

    def _stop(self) -> None:
        """End everything; blocks until no process of ours is left."""
        for step in (self._close_server, self._history.close, self._bridge.close, self._handle.stop):
            try:
                step()
            except Exception:
                _log.exception("a part of the app did not end cleanly")


def _worded(error: "ErrorInfo") -> str:
    from laya_desktop.ui import engine_text

    return engine_text.error(error)


def _application() -> "QApplication":
    from PySide6.QtCore import QCoreApplication, QLibraryInfo
    from PySide6.QtWidgets import QApplication

    display.prefer_ibus(os.environ, Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath)))
    QCoreApplication.setApplicationName("Laya Desktop")
    QCoreApplication.setOrganizationName("laya-desktop")
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setDesktopFileName("laya-desktop")
    return app
