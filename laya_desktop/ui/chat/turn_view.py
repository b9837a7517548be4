"""A turn as the transcript shows it. UI thread only."""

from typing import Any

from PySide6.QtCore import QCoreApplication

from laya_desktop.core.types import Role
from laya_desktop.ui import engine_text
from laya_desktop.ui.chat.message_view import MessageData, State
from laya_desktop.ui.chat.turn import Phase, Turn, footer_text, status_text, why_text


def message(turn: Turn, *, latest: bool) -> MessageData:
    """The whole message. `latest` says whether it is the last turn: only that one can be asked again."""
    role = "user" if turn.role == Role.USER else "assistant"
    return MessageData(id=turn.id, role=role, text=turn.content, **fields(turn, latest=latest))


def fields(turn: Turn, *, latest: bool) -> dict[str, Any]:
    """What may change beside the text."""
    if turn.role == Role.USER:
        return {"state": "complete"}
    translate = QCoreApplication.translate
    chips = (translate("chat", "no longer sent"),) if turn.left_out else ()
    error = engine_text.error(turn.error) if turn.error is not None else ""
    footer = footer_text(turn)
    if error and not latest:
        footer = translate("chat", "failed: {0}").format(error)
    return {
        "model": turn.model,
        "why": why_text(turn.decision) if turn.decision is not None else "",
        "chips": chips,
        "state": _state(turn, latest=latest),
        "status": status_text(turn),
        "footer": footer,
        "error": error,
    }


def _state(turn: Turn, *, latest: bool) -> State:
    if not turn.phase.final:
        return "streaming"
    if not latest or turn.phase is Phase.DONE:
        return "complete"
    return "error" if turn.phase is Phase.FAILED else "cancelled"
