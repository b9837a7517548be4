"""One turn of a conversation as the window holds it, and the words for its state. UI thread only."""

from dataclasses import dataclass, field
from enum import Enum, auto
from uuid import uuid4

from PySide6.QtCore import QCoreApplication, QObject

from laya_desktop.core.errors import ErrorInfo
from laya_desktop.core.types import Decision, Role, Timings, Usage
from laya_desktop.ui import engine_text, format


class Phase(Enum):
    """What an answer is doing. The last three are final."""

    ROUTING = auto()
    QUEUED = auto()
    LOADING = auto()
    READING = auto()
    WRITING = auto()
    DONE = auto()
    STOPPED = auto()
    FAILED = auto()

    @property
    def final(self) -> bool:
        return self in (Phase.DONE, Phase.STOPPED, Phase.FAILED)


@dataclass(slots=True)
class Turn:
    """Stored under the same `id`. `left_out` turns are shown but no longer sent. `progress` belongs to the
    phase: a place in the queue, or 0…1."""

    role: Role
    content: str = ""
    id: str = field(default_factory=lambda: uuid4().hex)
    phase: Phase = Phase.DONE
    progress: float = 0.0
    model: str = ""
    decision: Decision | None = None
    error: ErrorInfo | None = None
    usage: Usage | None = None
    timings: Timings | None = None
    first_token_s: float | None = None
    context_tokens: int = 0
    left_out: bool = False


class _Words(QObject):
    """Plural forms are collected for translation from `QObject.tr` only."""

    def tokens(self, count: int) -> str:
        return self.tr("%n token(s)", "", count)


def status_text(turn: Turn) -> str:
    """What the answer is doing; empty while it is being written or is over."""
    translate = QCoreApplication.translate
    match turn.phase:
        case Phase.ROUTING:
            return translate("chat", "Choosing a model…")
        case Phase.QUEUED:
            return translate("chat", "In the queue, place {0}").format(int(turn.progress))
        case Phase.LOADING:
            text = translate("chat", "Loading {model}… {percent}")
            return text.format(model=turn.model, percent=format.percent(turn.progress))
        case Phase.READING:
            return translate("chat", "Reading the prompt… {0}").format(format.percent(turn.progress))
        case Phase.STOPPED if not turn.content:
            return translate("chat", "Stopped")
    return ""


def why_text(decision: Decision) -> str:
    """The chip beside the model's name: `why: code · rule name · 14 µs`."""
    from laya_desktop.ui.routing.words import task

    translate = QCoreApplication.translate
    parts = [task(decision.task), engine_text.rule(decision), format.microseconds(decision.elapsed_us)]
    return translate("chat", "why: {0}").format(" · ".join(part for part in parts if part))


def why_details(decision: Decision) -> str:
    """The whole story of a decision, a line each."""
    translate = QCoreApplication.translate
    lines = [engine_text.reason(decision)]
    for candidate in decision.candidates:
        if candidate.excluded:
            lines.append(
                translate("chat", "{model}: not eligible, {reason}").format(
                    model=candidate.model, reason=candidate.excluded
                )
            )
        elif candidate.model == decision.model:
            lines.append(translate("chat", "{0}: chosen").format(candidate.model))
        else:
            lines.append(translate("chat", "{0}: could answer too").format(candidate.model))
    lines.append(translate("chat", "decided in {0}").format(format.microseconds(decision.elapsed_us)))
    return "\n".join(lines)


def footer_text(turn: Turn) -> str:
    """`0.41 s to first token · 31.8 tokens/s · 412 tokens · context 1.2k / 8k`."""
    if turn.role != Role.ASSISTANT or not turn.phase.final:
        return ""
    translate = QCoreApplication.translate
    parts = []
    if turn.phase is Phase.STOPPED and turn.content:
        parts.append(translate("chat", "stopped"))
    if turn.first_token_s is not None:
        parts.append(translate("chat", "{0} to first token").format(format.seconds(turn.first_token_s)))
    speed = tokens_per_second(turn)
    if speed is not None:
        parts.append(translate("chat", "{0} tokens/s").format(f"{speed:.1f}"))
    if turn.usage is not None:
        parts.append(_Words().tokens(turn.usage.completion_tokens))
        if turn.context_tokens:
            used = format.count(turn.usage.prompt_tokens + turn.usage.completion_tokens)
            text = translate("chat", "context {0} / {1}")
            parts.append(text.format(used, format.context(turn.context_tokens)))
    return " · ".join(parts)


def tokens_per_second(turn: Turn) -> float | None:
    """Speed of decoding: the tokens after the first over the time they took."""
    if turn.usage is None or turn.timings is None or turn.timings.decode_ms <= 0:
        return None
    return max(0, turn.usage.completion_tokens - 1) / (turn.timings.decode_ms / 1000)
