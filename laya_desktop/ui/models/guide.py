"""What to do while no model is there: take the starter model or choose a file. UI thread only."""

from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFileDialog

from laya_desktop.core.errors import ErrorInfo
from laya_desktop.ui import engine_text, theme
from laya_desktop.ui.layouts import Flow
from laya_desktop.ui.services import Services
from laya_desktop.ui.widgets import Card, Retranslating, Text, button


def entry_for(path: Path, taken: set[str]) -> dict[str, str]:
    """A `models` entry of config.yaml for a file, with a name that is free."""
    stem = path.stem.lower().replace(" ", "-")
    name, number = stem, 2
    while name in taken or name == "auto":
        name, number = f"{stem}-{number}", number + 1
    return {"name": name, "path": str(path)}


class ModelGuide(Retranslating, Card):
    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._title = Text(size=theme.TITLE, bold=True)
        self._starter = Text(wrap=True)
        self._own = Text(wrap=True)
        self._problem = Text(tone="danger", size=theme.SMALL, wrap=True, selectable=True)
        self._problem.hide()
        self._choose = button("primary")
        self._folder = button()
        self._copy = button()
        self._copy.hide()
        self._snippet = ""
        self.body.setContentsMargins(theme.S5, theme.S5, theme.S5, theme.S5)
        self.body.setSpacing(theme.S3)
        for widget in (self._title, self._starter, self._own):
            self.body.addWidget(widget)
        actions = Flow()
        for widget in (self._choose, self._folder, self._copy):
            actions.addWidget(widget)
        self.body.addLayout(actions)
        self.body.addWidget(self._problem)
        self._choose.clicked.connect(self._ask_for_file)
        self._folder.clicked.connect(self._open_folder)
        self._copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._snippet))
        self.retranslate()

    def retranslate(self) -> None:
        self._title.setText(self.tr("Laya needs a model"))
        text = self.tr(
            "The quickest start is the starter model SmolLM2 135M (98 MB): put the file "
            "SmolLM2-135M-Instruct.Q4_1.gguf into the models folder and open Laya again. "
            "In a checkout, “python3 packaging/dev.py run” fetches it for you."
        )
        self._starter.setText(text)
        text = self.tr(
            "Or choose a GGUF file that you have. It stays where it is; "
            "Laya adds it to “models:” in config.yaml."
        )
        self._own.setText(text)
        self._choose.setText(self.tr("Choose a GGUF file…"))
        self._folder.setText(self.tr("Open models folder"))
        self._copy.setText(self.tr("Copy the lines for config.yaml"))

    def add(self, path: Path) -> None:
        """Register a model file in config.yaml."""
        models = self._services.bridge.config.models
        entry = entry_for(path, {model.name for model in models})
        self._snippet = f"models:\n  - name: {entry['name']}\n    path: {entry['path']}\n"
        self._problem.hide()
        self._copy.hide()
        if models:
            # Only the whole list can be set, and writing it anew would lose the user's comments.
            self._copy.show()
        else:
            self._services.bridge.set_config("models", [entry], self._refused)

    def _ask_for_file(self) -> None:
        dialog = QFileDialog(self.window(), self.tr("Choose a GGUF file"))
        dialog.setNameFilters([self.tr("GGUF models (*.gguf)"), self.tr("All files (*)")])
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda name: self.add(Path(name)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _open_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._services.paths.models)))

    def _refused(self, error: ErrorInfo) -> None:
        self._problem.setText(engine_text.error(error))
        self._problem.show()
        self._copy.show()
