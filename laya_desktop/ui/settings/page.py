"""The settings page: language and theme, the server, where files lie. UI thread only."""

from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLayout, QVBoxLayout, QWidget

from laya_desktop.core.errors import ErrorInfo
from laya_desktop.core.types import AUTO_MODEL
from laya_desktop.ui import engine_text, theme
from laya_desktop.ui.layouts import Flow, ScrollPage
from laya_desktop.ui.services import Services
from laya_desktop.ui.widgets import Card, Dot, PageHeader, Retranslating, Text, button


def curl_snippet(url: str) -> str:
    """A request that answers when pasted into a terminal."""
    body = f'{{"model": "{AUTO_MODEL}", "messages": [{{"role": "user", "content": "Hello"}}]}}'
    return f"curl {url}/v1/chat/completions -H 'Content-Type: application/json' -d '{body}'"


class _Row(QWidget):
    """Name and description at the left, a control at the right."""

    def __init__(self, control: QWidget | QLayout) -> None:
        super().__init__()
        self.name = Text(bold=True)
        self.about = Text(tone="muted", size=theme.SMALL, wrap=True)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self.name)
        words.addWidget(self.about)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, theme.S1, 0, theme.S1)
        row.setSpacing(theme.S4)
        row.addLayout(words, 1)
        if isinstance(control, QWidget):
            row.addWidget(control)
        else:
            row.addLayout(control)


class _GeneralCard(Retranslating, Card):
    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._language, self._theme = QComboBox(), QComboBox()
        for combo in (self._language, self._theme):
            combo.setMinimumWidth(170)
        self._problem = Text(tone="danger", size=theme.SMALL, wrap=True, selectable=True)
        self._problem.hide()
        self._language_row, self._theme_row = _Row(self._language), _Row(self._theme)
        self.body.addWidget(self._language_row)
        self.body.addWidget(self._theme_row)
        self.body.addWidget(self._problem)
        self._language.activated.connect(lambda: self._save("ui.language", self._language.currentData()))
        self._theme.activated.connect(lambda: self._save("ui.theme", self._theme.currentData()))
        services.bridge.config_applied.connect(self.refresh)
        self.retranslate()

    def retranslate(self) -> None:
        languages = (("system", self.tr("Same as the system")), ("en", "English"), ("zh_CN", "简体中文"))
        themes = (
            ("system", self.tr("Same as the system")),
            ("light", self.tr("Light")),
            ("dark", self.tr("Dark")),
        )
        for combo, entries in ((self._language, languages), (self._theme, themes)):
            combo.clear()
            for value, label in entries:
                combo.addItem(label, value)
        self._language_row.name.setText(self.tr("Language"))
        self._language_row.about.setText(self.tr("Changes at once."))
        self._theme_row.name.setText(self.tr("Theme"))
        self._theme_row.about.setText(self.tr("Light, dark, or whatever the system shows."))
        self._language.setAccessibleName(self.tr("Language"))
        self._theme.setAccessibleName(self.tr("Theme"))
        self.refresh()

    def refresh(self) -> None:
        """Show the values in effect."""
        ui = self._services.bridge.config.ui
        self._language.setCurrentIndex(self._language.findData(ui.language))
        self._theme.setCurrentIndex(self._theme.findData(ui.theme))

    def _save(self, key: str, value: str) -> None:
        self._problem.hide()
        self._services.bridge.set_config(key, value, self._refused)

    def _refused(self, error: ErrorInfo) -> None:
        self._problem.setText(engine_text.error(error))
        self._problem.show()
        self.refresh()


class _ServerCard(Retranslating, Card):
    def __init__(self, services: Services) -> None:
        super().__init__()
        self._state = services.state
        self._dot = Dot()
        self._title = Text(bold=True)
        self._about = Text(tone="muted", size=theme.SMALL, wrap=True, selectable=True)
        self._address = Text(selectable=True)
        self._address.setFont(theme.mono())
        self._snippet = Text(tone="muted", wrap=True, selectable=True)
        self._snippet.setFont(theme.mono(theme.SMALL))
        self._copy_address, self._copy_snippet = button(), button()
        head = QHBoxLayout()
        head.setSpacing(theme.S2)
        head.addWidget(self._dot)
        head.addWidget(self._title)
        head.addStretch(1)
        self.body.addLayout(head)
        self.body.addWidget(self._about)
        self.body.addWidget(self._address)
        self.body.addWidget(self._snippet)
        actions = Flow()
        actions.addWidget(self._copy_address)
        actions.addWidget(self._copy_snippet)
        self.body.addLayout(actions)
        clipboard = QGuiApplication.clipboard()
        self._copy_address.clicked.connect(lambda: clipboard.setText(f"{self._state.server.url}/v1"))
        self._copy_snippet.clicked.connect(
            lambda: clipboard.setText(curl_snippet(self._state.server.url or ""))
        )
        self._state.server_changed.connect(self.retranslate)
        self.retranslate()

    def retranslate(self) -> None:
        server = self._state.server
        running = server.url is not None
        self._title.setText(self.tr("Server"))
        self._copy_address.setText(self.tr("Copy address"))
        self._copy_snippet.setText(self.tr("Copy curl command"))
        self._dot.set_token("ok" if running else "danger" if server.problem else "muted")
        if running:
            about = self.tr("Programs that speak the OpenAI API can use Laya at this address.")
        else:
            about = server.problem or self.tr("The server is off.")
        self._about.setText(about)
        for widget in (self._address, self._snippet, self._copy_address, self._copy_snippet):
            widget.setVisible(running)
        if server.url is not None:
            self._address.setText(f"{server.url}/v1")
            self._snippet.setText(curl_snippet(server.url))


class _FilesCard(Retranslating, Card):
    def __init__(self, services: Services) -> None:
        super().__init__()
        self._bridge = services.bridge
        paths = services.paths
        self._problems = Text(tone="danger", size=theme.SMALL, wrap=True, selectable=True)
        self._rows: list[tuple[_Row, Path]] = []
        self._buttons = []
        for path in (services.config_file, paths.data, paths.logs):
            open_button = button()
            row = _Row(open_button)
            row.about.setText(str(path))
            open_button.clicked.connect(lambda _checked=False, path=path: _open(path))
            self._rows.append((row, path))
            self._buttons.append(open_button)
            self.body.addWidget(row)
            if path == services.config_file:
                self.body.addWidget(self._problems)
        self._bridge.config_applied.connect(self.refresh)
        self._bridge.config_rejected.connect(self.refresh)
        self.retranslate()

    def retranslate(self) -> None:
        names = (self.tr("Config file"), self.tr("Chats and models"), self.tr("Logs"))
        for (row, _path), name, open_button in zip(self._rows, names, self._buttons, strict=True):
            row.name.setText(name)
            open_button.setText(self.tr("Open"))
            open_button.setAccessibleName(self.tr("Open: {0}").format(name))
        self.refresh()

    def refresh(self, _problems: object = None) -> None:
        """Show what is wrong with the config file."""
        problems = self._bridge.config_problems
        self._problems.setText("\n".join(problems))
        self._problems.setVisible(bool(problems))


class SettingsPage(Retranslating, QWidget):
    def __init__(self, services: Services) -> None:
        super().__init__()
        self._header = PageHeader()
        page = ScrollPage(max_width=760)
        for card in (_GeneralCard(services), _ServerCard(services), _FilesCard(services)):
            page.column.addWidget(card)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header)
        column.addWidget(page, 1)
        self.retranslate()

    def retranslate(self) -> None:
        self._header.title.setText(self.tr("Settings"))


def _open(path: Path) -> None:
    """Open a file or folder; a config file that does not exist yet opens its folder."""
    target = path if path.exists() else path.parent
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(target)))
