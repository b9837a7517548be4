"""What the router knows of a model, and which models a task allows. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from laya_desktop.config.schema import ModelEntry
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import ModelState
from laya_desktop.engine.routing import intent
from laya_desktop.engine.routing.features import Features

CAPABLE_PARAMETERS = 1.5e9
"""Below this many, a model is not trusted with writing, translation and code if a larger one is there."""

_LARGE = 0.7
"""A model with this part of the largest one's parameters counts as large too."""

_BYTES_PER_PARAMETER = 0.6


@dataclass(frozen=True, slots=True)
class Card:
    """A registered model. `parameters` is estimated from the size of its files where they do not say, 0 if
    nothing is known; `size` in bytes, `context` in tokens of a stream, `slots` streams."""

    name: str
    priority: int
    size: int
    parameters: float
    context: int
    slots: int
    has_template: bool
    is_coder: bool
    is_reasoner: bool


def make_card(entry: ModelEntry | None, status: ModelStatus, default_context: int) -> Card:
    """`entry` is None for a model that was just taken out of the config."""
    info, loaded = status.info, status.loaded
    tags = entry.tags if entry else ()
    words = f"{status.name} {info.title if info and info.title else ''} {' '.join(tags)}".casefold()
    size = info.size_bytes if info else 0
    return Card(
        name=status.name,
        priority=entry.priority if entry else 0,
        size=size,
        parameters=(info.parameters if info else None) or size / _BYTES_PER_PARAMETER,
        context=loaded.context_tokens if loaded else (entry and entry.context_tokens) or default_context,
        slots=loaded.max_streams if loaded else 1,
        has_template=info is None or info.has_chat_template or bool(entry and entry.chat_template),
        is_coder="code" in words,
        is_reasoner="reasoning" in tags,
    )


def unusable(card: Card, status: ModelStatus, tokens: int, now: float) -> str:
    """Why a model cannot answer a prompt of so many tokens, "" if it can. One that failed may be tried again
    when its time has come; one whose file is unusable may not."""
    if status.error is not None and (
        status.state is not ModelState.FAILED or (status.retry_at is not None and now < status.retry_at)
    ):
        return status.error.message
    if not card.has_template:
        return "It has no chat template."
    if tokens >= card.context:
        return f"Its context of {card.context} tokens is too small for about {tokens}."
    return ""


def is_clear(features: Features, confidence: float = intent.CONFIDENT) -> bool:
    """Whether the task is certain enough to act on. Code in a prompt speaks for itself."""
    return features.confidence >= confidence or (features.task == "code" and features.has_code)


def allowed(cards: Sequence[Card], features: Features) -> tuple[Sequence[Card], str]:
    """Those of at least one model that the task allows, and why: never none."""
    if features.light:
        return cards, "A light prompt may go to any model."
    large = _large(cards)
    if not is_clear(features):
        return large, "The task is not certain, so a large model answers."
    match features.task:
        case "code":
            coders = [card for card in cards if card.is_coder]
            return (
                (_capable(coders), "Code goes to a code model.")
                if coders
                else (large, "Code goes to a large model.")
            )
        case "reasoning":
            tagged = [card for card in cards if card.is_reasoner]
            return tagged or large, "A demanding prompt goes to a model that reasons well."
        case "writing":
            return _capable(cards), "Writing needs a model that is not too small."
        case "translation":
            return _capable(cards), "Translation needs a model that is not too small."
    return large, "A long prompt goes to a large model."


def _large(cards: Sequence[Card]) -> list[Card]:
    bound = _LARGE * max(card.parameters for card in cards)
    return [card for card in cards if card.parameters >= bound]


def _capable(cards: Sequence[Card]) -> Sequence[Card]:
    """Without the smallest models, where that leaves any; else the large ones among them."""
    return [card for card in cards if card.parameters >= CAPABLE_PARAMETERS] or _large(cards)
