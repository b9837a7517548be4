"""The window: rail, banners and the pages, which are made when they are first shown. UI thread only."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from laya_desktop.core.errors import ErrorInfo
from laya_desktop.ui import engine_text, icons
from laya_desktop.ui.banner import BannerStack
from laya_desktop.ui.chat.page import ChatPage
from laya_desktop.ui.rail import Rail
from laya_desktop.ui.services import EngineState, Services
from laya_desktop.ui.widgets import Retranslating
from laya_desktop.ui.window_state import WindowState

PAGES = ("chat", "models", "routing", "monitor", "settings")
_NARROW = 860


class MainWindow(Retranslating, QWidget):
    """Emits `port_wanted` to move the server to a free port."""

    port_wanted = Signal(int)

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._state = WindowState(services.paths.data)
        self.setWindowIcon(icons.logo())
        self.setMinimumSize(640, 420)
        self.resize(1180, 760)
        self.rail = Rail(services, PAGES)
        self.banners = BannerStack()
        self._stack = QStackedWidget()
        self._pages: dict[str, QWidget] = {}
        content = QVBoxLayout()
        content.setSpacing(0)
        content.addWidget(self.banners)
        content.addWidget(self._stack, 1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.rail)
        row.addLayout(content, 1)
        self.rail.chosen.connect(lambda index: self.show_page(PAGES[index]))
        self.rail.monitor_wanted.connect(lambda: self.show_page("monitor"))
        self._add_shortcuts()
        self._follow_services()
        self._state.restore(self)
        self.retranslate()
        self.show_page("chat")

    @property
    def chat(self) -> ChatPage:
        page = self.page("chat")
        assert isinstance(page, ChatPage)
        return page

    def page(self, name: str) -> QWidget:
        """The page `name`, made now if need be."""
        if name not in self._pages:
            made = _make_page(name, self._services)
            self._pages[name] = made
            self._stack.addWidget(made)
            if isinstance(made, ChatPage):
                made.set_narrow(self.width() < _NARROW)
        return self._pages[name]

    def show_page(self, name: str) -> None:
        """Bring a page to the front."""
        self._stack.setCurrentWidget(self.page(name))
        self.rail.select(PAGES.index(name))
        if name == "chat":
            self.chat.focus_prompt()

    def shown_page(self) -> str:
        """The name of the page at the front."""
        return next(name for name, page in self._pages.items() if page is self._stack.currentWidget())

    def retranslate(self) -> None:
        self.setWindowTitle("Laya Desktop")

    def resizeEvent(self, event: QResizeEvent) -> None:
        narrow = self.width() < _NARROW
        self.rail.set_narrow(narrow)
        if "chat" in self._pages:
            self.chat.set_narrow(narrow)
        super().resizeEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._state.save(self)
        if "chat" in self._pages:
            self.chat.save_all()
        event.accept()

    def _add_shortcuts(self) -> None:
        # Qt turns Ctrl into Cmd on macOS.
        keys: dict[str, Callable[[], None]] = {
            "Ctrl+N": self._new_chat,
            "Ctrl+L": lambda: self.show_page("chat"),
            "Ctrl+,": lambda: self.show_page("settings"),
            "Esc": self._escape,
        }
        for number, name in enumerate(PAGES, start=1):
            keys[f"Ctrl+{number}"] = lambda name=name: self.show_page(name)
        for key, action in keys.items():
            QShortcut(QKeySequence(key), self, action, context=Qt.ShortcutContext.WindowShortcut)

    def _new_chat(self) -> None:
        self.show_page("chat")
        self.chat.new_chat()

    def _escape(self) -> None:
        if self.shown_page() == "chat":
            self.chat.escape()

    def _follow_services(self) -> None:
        self._services.bridge.config_rejected.connect(self._show_config_problems)
        self._services.bridge.config_applied.connect(self._note_config)
        self._services.state.server_changed.connect(self._note_server)
        self._services.state.engine_changed.connect(self._note_engine)
        self._services.history.notice.connect(self._show_store_notice)
        self._services.history.failed.connect(self._show_store_problem)
        self._note_config()

    def _note_config(self) -> None:
        problems = self._services.bridge.config_problems
        if problems:
            self._show_config_problems(problems)
        else:
            self.banners.dismiss("config")

    def _show_config_problems(self, problems: tuple[str, ...]) -> None:
        def text() -> str:
            head = self.tr("config.yaml has a problem; the last good settings stay in effect.")
            return "\n".join((head, *problems))

        self.banners.show_banner("config", "warn", text)

    def _show_store_notice(self, text: str) -> None:
        self.banners.show_banner("store", "danger", lambda: text)

    def _show_store_problem(self, error: ErrorInfo) -> None:
        self.banners.show_banner("store", "danger", lambda: engine_text.error(error))

    def _note_server(self) -> None:
        server = self._services.state.server
        if not server.problem:
            self.banners.dismiss("server")
            return

        def text() -> str:
            return server.problem + " " + self.tr("The server is off; chats in this window work.")

        port = server.free_port
        if port is None:
            self.banners.show_banner("server", "warn", text)
            return
        action = (lambda: self.tr("Use port {0}").format(port), lambda: self.port_wanted.emit(port))
        self.banners.show_banner("server", "warn", text, action)

    def _note_engine(self) -> None:
        error = self._services.state.engine_error
        if self._services.state.engine is not EngineState.FAILED:
            self.banners.dismiss("engine")
            return
        self.banners.show_banner(
            "engine", "danger", lambda: engine_text.error(error) if error else self.tr("The engine stopped.")
        )


def _make_page(name: str, services: Services) -> QWidget:
    """Pages are imported when they are first shown, to start fast."""
    if name == "chat":
        return ChatPage(services)
    if name == "models":
        from laya_desktop.ui.models.page import ModelsPage

        return ModelsPage(services)
    if name == "routing":
        from laya_desktop.ui.routing.page import RoutingPage

        return RoutingPage(services)
    if name == "monitor":
        from laya_desktop.ui.monitor.page import MonitorPage

        return MonitorPage(services)
    from laya_desktop.ui.settings.page import SettingsPage

    return SettingsPage(services)
