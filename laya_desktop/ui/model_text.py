"""How a model's state and facts are worded and coloured, the same on every page. UI thread only."""

from PySide6.QtCore import QCoreApplication, QObject

from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import ModelState
from laya_desktop.ui import format
from laya_desktop.ui.widgets import ChipTone

_TOKENS = {
    ModelState.COLD: "muted",
    ModelState.LOADING: "warn",
    ModelState.WARM: "ok",
    ModelState.BUSY: "accent",
    ModelState.UNLOADING: "warn",
    ModelState.FAILED: "danger",
}


class _Words(QObject):
    """Plural forms are collected for translation from `QObject.tr` only."""

    def busy(self, streams: int) -> str:
        return self.tr("busy · %n stream(s)", "", streams)

    def answers(self, count: int) -> str:
        return self.tr("%n answer(s)", "", count)


def state_token(model: ModelStatus) -> str:
    """The colour token of the model's dot."""
    return "danger" if model.error is not None else _TOKENS[model.state]


def state_tone(model: ModelStatus) -> ChipTone:
    """The tone of the model's state chip."""
    if model.state == ModelState.FAILED or model.error is not None:
        return "danger"
    return "accent" if model.state == ModelState.BUSY else "ok" if model.state == ModelState.WARM else "plain"


def state_text(model: ModelStatus) -> str:
    """`cold`, `loading 62 %`, `warm`, `busy · 2 streams`, `failed`."""
    match model.state:
        case ModelState.LOADING if model.progress:
            return QCoreApplication.translate("models", "loading {0}").format(format.percent(model.progress))
        case ModelState.LOADING:
            return QCoreApplication.translate("models", "loading")
        case ModelState.WARM:
            return QCoreApplication.translate("models", "warm")
        case ModelState.BUSY:
            return _Words().busy(max(1, model.streams))
        case ModelState.UNLOADING:
            return QCoreApplication.translate("models", "unloading")
        case ModelState.FAILED:
            return QCoreApplication.translate("models", "failed")
    if model.error is not None:
        return QCoreApplication.translate("models", "unusable")
    return QCoreApplication.translate("models", "cold")


def facts(model: ModelStatus) -> str:
    """`GGUF · Q8_0 · 0.5B · 8k of 32k context · 148 answers`; what is not known is left out."""
    parts = [model.backend.upper()]
    info = model.info
    if info is not None:
        if info.quantization:
            parts.append(info.quantization)
        if info.parameters:
            parts.append(format.parameters(info.parameters))
        parts.append(format.size(info.size_bytes))
    context = _context(model)
    if context:
        parts.append(context)
    if model.answers:
        parts.append(_Words().answers(model.answers))
    return " · ".join(parts)


def _context(model: ModelStatus) -> str:
    trained = model.info.trained_context if model.info is not None else None
    loaded = model.loaded.context_tokens if model.loaded is not None else None
    if loaded and trained and loaded != trained:
        text = QCoreApplication.translate("models", "{0} of {1} context")
        return text.format(format.context(loaded), format.context(trained))
    if loaded or trained:
        return QCoreApplication.translate("models", "{0} context").format(
            format.context(loaded or trained or 0)
        )
    return ""
