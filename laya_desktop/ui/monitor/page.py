"""The monitor page: memory now and over two minutes, models, queue, events. UI thread only."""

from typing import TYPE_CHECKING

from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from laya_desktop.core.events import MemorySample, Notice
from laya_desktop.ui import engine_text, format, theme
from laya_desktop.ui.card_list import CardsModel, CardsView, CardText
from laya_desktop.ui.layouts import ScrollPage
from laya_desktop.ui.services import Services
from laya_desktop.ui.widgets import Bar, Card, ChipTone, ElidedText, PageHeader, Retranslating, Text

if TYPE_CHECKING:
    from laya_desktop.ui.monitor.plot import MemoryPlot

_TONES: dict[str, ChipTone] = {
    "loaded": "ok",
    "unloading": "warn",
    "fallback": "warn",
    "failed": "danger",
}


class _Figure(Card):
    """A big number with its name."""

    def __init__(self) -> None:
        super().__init__()
        self.name = ElidedText(tone="muted", size=theme.SMALL)
        self.value = ElidedText("–", size=theme.TITLE, bold=True)
        self.body.setSpacing(theme.S1)
        self.body.addWidget(self.name)
        self.body.addWidget(self.value)


class MonitorPage(Retranslating, QWidget):
    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._plot: MemoryPlot | None = None
        self._header = PageHeader()
        self._figures = [_Figure() for _ in range(5)]
        self._memory_title = Text(bold=True)
        self._legend = Text(tone="muted", size=theme.SMALL, wrap=True)
        self._models_title = Text(bold=True)
        self._events_title = Text(bold=True)
        self._waiting = Text(tone="muted", size=theme.SMALL)
        self._no_models = Text(tone="muted", size=theme.SMALL, wrap=True)
        self._no_events = Text(tone="muted", size=theme.SMALL, wrap=True)
        self._events_model = CardsModel(self._event_card)
        self._events = CardsView(self._events_model, framed=False)
        self._lay_out()
        services.bridge.memory_changed.connect(self._show_sample)
        services.bridge.queue_changed.connect(self._show_queue)
        services.log.notice_added.connect(self._show_events)
        theme.notifier().changed.connect(self._show_models)
        self.retranslate()
        self._show_queue(*services.bridge.queue)

    def retranslate(self) -> None:
        self._header.title.setText(self.tr("Monitor"))
        memory = self._services.bridge.memory
        names = (
            self.tr("In use of {0}").format(format.size(memory.limit) if memory is not None else "–"),
            self.tr("Free"),
            self.tr("Models"),
            self.tr("Kept for the system"),
            self.tr("Requests"),
        )
        for figure, name in zip(self._figures, names, strict=True):
            figure.name.setText(name)
        self._memory_title.setText(self.tr("Memory, last 2 minutes"))
        self._legend.setText(
            self.tr(
                "The line is all memory in use, the bands are models; what is above the dashed line is kept "
                "for the system."
            )
        )
        self._models_title.setText(self.tr("Memory by model"))
        self._events_title.setText(self.tr("Events"))
        self._waiting.setText(self.tr("Waiting for the first sample…"))
        self._no_models.setText(self.tr("No model is loaded."))
        self._no_events.setText(self.tr("Nothing happened yet. Loads, unloads and crashes appear here."))
        self._events.setAccessibleName(self.tr("Events"))
        self._show_queue(*self._services.bridge.queue)
        self._show_events()
        self._label_plot()
        if self._services.bridge.memory is not None:
            self._show_sample(self._services.bridge.memory)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._plot is None:
            self._make_plot()
        if self._services.bridge.memory is not None:
            self._show_sample(self._services.bridge.memory)

    def resizeEvent(self, event: QResizeEvent) -> None:
        narrow = self.width() < 720
        direction = QBoxLayout.Direction.TopToBottom if narrow else QBoxLayout.Direction.LeftToRight
        self._lower.setDirection(direction)
        columns = 3 if narrow else 5
        for number, figure in enumerate(self._figures):
            self._grid.addWidget(figure, number // columns, number % columns)
            self._grid.setColumnStretch(number, 1 if number < columns else 0)
        super().resizeEvent(event)

    def _lay_out(self) -> None:
        page = ScrollPage(fill=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header)
        column.addWidget(page, 1)
        self._grid = QGridLayout()
        self._grid.setSpacing(theme.S3)
        for number, figure in enumerate(self._figures):
            self._grid.addWidget(figure, 0, number)
        page.column.addLayout(self._grid)
        self._memory_card = Card()
        self._memory_card.body.addWidget(self._memory_title)
        self._memory_card.body.addWidget(self._legend)
        self._memory_card.body.addWidget(self._waiting)
        self._memory_card.setMinimumHeight(240)
        page.column.addWidget(self._memory_card)
        models = Card()
        models.body.addWidget(self._models_title)
        models.body.addWidget(self._no_models)
        self._model_rows = QVBoxLayout()
        self._model_rows.setSpacing(theme.S3)
        models.body.addLayout(self._model_rows)
        models.body.addStretch(1)
        events = Card()
        events.setMinimumHeight(220)
        events.body.setContentsMargins(1, theme.S3, 1, theme.S3)
        title = QVBoxLayout()
        title.setContentsMargins(theme.S4, 0, theme.S4, 0)
        title.addWidget(self._events_title)
        title.addWidget(self._no_events)
        events.body.addLayout(title)
        events.body.addWidget(self._events, 1)
        self._lower = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._lower.setSpacing(theme.S3)
        self._lower.addWidget(events, 3)
        self._lower.addWidget(models, 2)
        page.column.addLayout(self._lower)

    def _make_plot(self) -> None:
        from laya_desktop.ui.monitor.plot import MemoryPlot

        self._plot = MemoryPlot()
        self._plot.setAccessibleName(self.tr("Memory, last 2 minutes"))
        self._memory_card.body.addWidget(self._plot, 1)
        self._label_plot()

    def _label_plot(self) -> None:
        if self._plot is not None:
            self._plot.set_times(self.tr("2 min ago"), self.tr("1 min ago"), self.tr("now"))

    def _show_sample(self, sample: MemorySample) -> None:
        self._waiting.hide()
        self._figures[0].name.setText(self.tr("In use of {0}").format(format.size(sample.limit)))
        free = max(0, sample.available)
        models = sum(sample.models.values())
        values = (
            format.size(sample.used),
            format.size(free),
            format.size(models),
            format.size(sample.reserved),
        )
        for figure, value in zip(self._figures, values, strict=False):
            figure.value.setText(value)
        if not self.isVisible():
            return
        if self._plot is not None:
            self._plot.show_samples(list(self._services.log.samples) or [sample])
        self._show_models()

    def _show_models(self) -> None:
        sample = self._services.bridge.memory
        models = {} if sample is None else {name: size for name, size in sample.models.items() if size}
        self._no_models.setVisible(not models)
        if sample is None or self._plot is None:
            return
        while self._model_rows.count() > len(models):
            _drop_last(self._model_rows)
        while self._model_rows.count() < len(models):
            self._model_rows.addWidget(_ModelRow())
        for number, (name, size) in enumerate(models.items()):
            row = self._model_rows.itemAt(number).widget()
            assert isinstance(row, _ModelRow)
            row.show_model(name, size, size / sample.limit, self._plot.token_of(name))

    def _show_queue(self, running: int, waiting: int) -> None:
        text = self.tr("{0} + {1} waiting") if waiting else "{0}"
        self._figures[4].value.setText(text.format(running, waiting))

    def _show_events(self) -> None:
        rows = list(reversed(self._services.log.notices))
        self._events_model.set_rows(rows)
        self._no_events.setVisible(not rows)

    def _event_card(self, notice: Notice) -> CardText:
        kinds = {
            "loaded": self.tr("loaded"),
            "unloading": self.tr("unloading"),
            "fallback": self.tr("fallback"),
            "failed": self.tr("failed"),
            "config": self.tr("settings"),
        }
        kind = kinds.get(notice.kind, notice.kind)
        return CardText(
            title=notice.model or kind,
            chips=((kind, _TONES.get(notice.kind, "plain")),) if notice.model else (),
            corner=(format.clock(notice.at), "plain"),
            text=engine_text.notice(notice),
        )


class _ModelRow(QWidget):
    """One model's memory."""

    def __init__(self) -> None:
        super().__init__()
        self._name = ElidedText(size=theme.SMALL)
        self._size = Text(tone="muted", size=theme.SMALL)
        self._bar = Bar()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.S1)
        line = QHBoxLayout()
        line.addWidget(self._name, 1)
        line.addWidget(self._size)
        column.addLayout(line)
        column.addWidget(self._bar)

    def show_model(self, name: str, size: int, share: float, token: str) -> None:
        self._name.setText(name)
        self._size.setText(format.size(size))
        self._bar.set_share(share, token=token)


def _drop_last(layout: QVBoxLayout) -> None:
    """Delete the last widget of a layout."""
    item = layout.takeAt(layout.count() - 1)
    widget = item.widget() if item is not None else None
    if widget is not None:
        widget.hide()
        widget.deleteLater()
