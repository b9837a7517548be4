"""How to choose among models that may answer. A strategy is one function that gives a score: the lowest wins.

Equal scores are decided by `priority`, then by size, then by the order in the config.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from laya_desktop.config.schema import Strategy
from laya_desktop.core.types import ModelState
from laya_desktop.engine.history import History
from laya_desktop.engine.routing.cards import Card
from laya_desktop.engine.routing.conversations import Answered
from laya_desktop.engine.routing.situation import Situation

_SHARE = 0.5
"""Part of a stream's time that each further stream of the same model adds to it."""

_WARM, _BUSY = ModelState.WARM, ModelState.BUSY


class Work(NamedTuple):
    """What is to be done, and where: `tokens` of the prompt, at most `limit` tokens of an answer (None: no
    limit). The model that answered before, if any, has computed some of them."""

    tokens: int
    limit: int | None
    previous: Answered | None
    situation: Situation
    history: History


Score = Callable[[Card, Work], float]


def predicted_s(card: Card, work: Work) -> float:
    """Seconds until the whole answer is there: waiting for a slot, loading, reading what is new of the
    prompt, writing."""
    tokens, limit, previous, situation, history = work
    name = card.name
    status, waiting = situation.models[name], situation.waiting(name)
    prefill, decode, load_s, completion = history.expected(name, card.size)
    state, streams = status.state, status.streams
    seconds = (completion if limit is None or completion < limit else limit) / decode
    if streams or waiting:
        ahead = waiting + max(0, streams - card.slots + 1)
        seconds *= 1 + _SHARE * min(streams, card.slots - 1)
        seconds += ahead * completion / decode / card.slots
    if state is not _WARM and state is not _BUSY:
        seconds += load_s * (1 - (status.progress or 0.0))
    if previous is not None and previous.model == name:
        tokens = max(0, tokens - previous.tokens)
    return seconds + tokens / prefill


def _requests(card: Card, work: Work) -> float:
    return work.situation.models[card.name].streams + work.situation.waiting(card.name)


STRATEGIES: dict[Strategy, Score] = {
    Strategy.MIN_LATENCY: predicted_s,
    Strategy.PRIORITY: lambda card, work: card.priority,
    Strategy.ROUND_ROBIN: lambda card, work: work.history.last_turn(card.name),
    Strategy.LEAST_BUSY: _requests,
    Strategy.QUALITY: lambda card, work: -card.size,
}


def choose(strategy: Strategy, cards: Sequence[Card], work: Work) -> tuple[Card, dict[str, float]]:
    """The best of at least one model, and the scores of all by name."""
    score = STRATEGIES[strategy]
    scores = {card.name: score(card, work) for card in cards}
    least = min(scores.values())
    best = [card for card in cards if scores[card.name] == least]
    return min(best, key=lambda card: (card.priority, card.size)), scores
