"""What the engine says, in the window's language. UI thread only.

The engine's sentences are English. Where a code says what happened we have words for it, and the engine's
sentence follows as the detail. In an English window that sentence is enough.
"""

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from laya_desktop.core.errors import ErrorCode, ErrorInfo
from laya_desktop.core.events import Notice
from laya_desktop.core.types import Decision

_ERRORS = {
    ErrorCode.MODEL_NOT_FOUND: QT_TRANSLATE_NOOP("engine", "There is no such model."),
    ErrorCode.MODEL_FILE_MISSING: QT_TRANSLATE_NOOP("engine", "The model's file is missing."),
    ErrorCode.MODEL_LOAD_FAILED: QT_TRANSLATE_NOOP("engine", "The model cannot be loaded."),
    ErrorCode.BACKEND_MISSING: QT_TRANSLATE_NOOP("engine", "What runs this kind of model is not installed."),
    ErrorCode.CHAT_TEMPLATE_ERROR: QT_TRANSLATE_NOOP("engine", "The model's chat template does not work."),
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: QT_TRANSLATE_NOOP("engine", "The chat is too long for this model."),
    ErrorCode.QUEUE_FULL: QT_TRANSLATE_NOOP("engine", "Too many requests are waiting."),
    ErrorCode.QUEUE_TIMEOUT: QT_TRANSLATE_NOOP("engine", "The request waited too long."),
    ErrorCode.INSUFFICIENT_MEMORY: QT_TRANSLATE_NOOP("engine", "There is not enough memory."),
    ErrorCode.WORKER_CRASHED: QT_TRANSLATE_NOOP("engine", "The model's process crashed."),
    ErrorCode.MODEL_UNLOADED: QT_TRANSLATE_NOOP("engine", "The model was unloaded."),
    ErrorCode.ENGINE_STOPPED: QT_TRANSLATE_NOOP("engine", "The engine is not running."),
}

_TASKS = {
    "task:chat": QT_TRANSLATE_NOOP("engine", "A light prompt goes to the smallest model."),
    "task:code": QT_TRANSLATE_NOOP("engine", "Code goes to the smallest code model, else to the largest."),
    "task:reasoning": QT_TRANSLATE_NOOP("engine", "A demanding prompt goes to the largest model."),
}


def error(info: ErrorInfo) -> str:
    """What went wrong and what to do next."""
    said = _ERRORS.get(info.code, "")
    worded = QCoreApplication.translate("engine", said)
    return info.sentence() if worded == said else f"{worded} {info.sentence()}"


def rule(decision: Decision) -> str:
    """Who decided, for a chip; empty where the task did."""
    if decision.rule in _TASKS:
        return ""
    if _is_named(decision):
        return QCoreApplication.translate("engine", "chosen by you")
    if _is_fallback(decision):
        return QCoreApplication.translate("engine", "fallback")
    return decision.rule


def reason(decision: Decision) -> str:
    """Why this model answers, as a sentence."""
    translate = QCoreApplication.translate
    if decision.rule in _TASKS:
        return translate("engine", _TASKS[decision.rule])
    if _is_named(decision):
        return translate("engine", "The request names this model.")
    if _is_fallback(decision):
        return translate("engine", "This model took over. {0}").format(decision.reason)
    if not decision.rule:
        return decision.reason
    return translate("engine", "Rule “{0}” matches.").format(decision.rule)


def notice(event: Notice) -> str:
    """A line of the timeline."""
    translate = QCoreApplication.translate
    name = event.model or ""
    match event.kind:
        case "loaded":
            return translate("engine", "{0} is warm.").format(name)
        case "unloading":
            return translate("engine", "{0} is being unloaded.").format(name)
        case "fallback":
            text = translate("engine", "{model} took over. {reason}")
            return text.format(model=name, reason=event.text)
    return event.text


def _is_named(decision: Decision) -> bool:
    return decision.rule == "named" and not decision.candidates


def _is_fallback(decision: Decision) -> bool:
    """A user's rule may have this name too."""
    return decision.rule == "fallback" and not decision.reason.startswith("Rule ")
