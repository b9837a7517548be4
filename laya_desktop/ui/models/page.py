"""The models page. UI thread only."""

from PySide6.QtWidgets import QStackedLayout, QVBoxLayout, QWidget

from laya_desktop.core.events import MemorySample, ModelStatus
from laya_desktop.ui.layouts import ScrollPage
from laya_desktop.ui.models.guide import ModelGuide
from laya_desktop.ui.models.view import ModelsModel, ModelsView
from laya_desktop.ui.services import Services
from laya_desktop.ui.widgets import Chip, PageHeader, Retranslating


class ModelsPage(Retranslating, QWidget):
    def __init__(self, services: Services) -> None:
        super().__init__()
        self._bridge = services.bridge
        self._model = ModelsModel()
        self.view = ModelsView(self._model)
        self._header = PageHeader()
        self._count = Chip()
        self._header.facts.addWidget(self._count)
        self._empty = ScrollPage(max_width=620)
        self._empty.column.addWidget(ModelGuide(services))
        self._body = QStackedLayout()
        self._body.addWidget(self.view)
        self._body.addWidget(self._empty)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header)
        column.addLayout(self._body, 1)
        self.view.load_wanted.connect(self._load)
        self.view.unload_wanted.connect(self._unload)
        self._bridge.models_changed.connect(self._show_models)
        self._bridge.memory_changed.connect(self._note_limit)
        if self._bridge.memory is not None:
            self._note_limit(self._bridge.memory)
        self._show_models(self._bridge.models)
        self.retranslate()

    def retranslate(self) -> None:
        self._header.title.setText(self.tr("Models"))
        self.view.setAccessibleName(self.tr("Models"))
        self.view.viewport().update()

    def _show_models(self, models: tuple[ModelStatus, ...]) -> None:
        self._model.set_models(models)
        self._count.setText(str(len(models)))
        self._count.setVisible(bool(models))
        self._body.setCurrentWidget(self.view if models else self._empty)

    def _note_limit(self, sample: MemorySample) -> None:
        self.view.memory_limit = sample.limit

    def _load(self, name: str) -> None:
        self._model.set_error(name, None)
        self._bridge.load(name, lambda error: self._model.set_error(name, error))

    def _unload(self, name: str) -> None:
        self._model.set_error(name, None)
        self._bridge.unload(name, lambda error: self._model.set_error(name, error))
