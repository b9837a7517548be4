"""How to choose among models that may answer. A strategy is one function that gives a score: the lowest wins.

Equal scores are decided by `priority`, then by size, then by the order in the config.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from laya_desktop.config.schema import Strategy
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import ModelState
from laya_desktop.engine.history import History

_SHARE = 0.5
"""Part of a stream's time that each further stream of the same model adds to it."""


class Option(NamedTuple):
    """A model that may answer. `size` in bytes, 0 if unknown; `waiting` requests are in its queue; `cached`
    tokens of the prompt were computed by it before."""

    name: str
    status: ModelStatus
    priority: int
    size: int
    slots: int
    waiting: int
    cached: int


class Load(NamedTuple):
    """What is to be done: `tokens` of the prompt, at most `limit` tokens of an answer (None: no limit)."""

    tokens: int
    limit: int | None


Score = Callable[[Option, Load, History], float]


def predicted_s(option: Option, load: Load, history: History) -> float:
    """Seconds until the whole answer is there: waiting for a slot, loading, reading what is new of the
    prompt, writing."""
    _, status, _, size, slots, waiting, cached = option
    prefill, decode, load_s, completion = history.expected(status.name, size)
    tokens, limit = load
    state, streams = status.state, status.streams
    length = completion if limit is None or completion < limit else limit
    seconds = length / decode
    if streams or waiting:
        seconds *= 1 + _SHARE * min(streams, slots - 1)
        seconds += (waiting + max(0, streams - slots + 1)) * completion / decode / slots
    if state is not _WARM and state is not _BUSY:
        seconds += load_s * (1 - (status.progress or 0.0))
    if tokens > cached:
        seconds += (tokens - cached) / prefill
    return seconds


_WARM, _BUSY = ModelState.WARM, ModelState.BUSY

STRATEGIES: dict[Strategy, Score] = {
    Strategy.MIN_LATENCY: predicted_s,
    Strategy.PRIORITY: lambda option, load, history: option.priority,
    Strategy.ROUND_ROBIN: lambda option, load, history: history.last_turn(option.name),
    Strategy.LEAST_BUSY: lambda option, load, history: option.status.streams + option.waiting,
    Strategy.QUALITY: lambda option, load, history: -option.size,
}


def choose(
    strategy: Strategy, options: Sequence[Option], load: Load, history: History
) -> tuple[Option, list[float]]:
    """The best of at least one option, and the scores of all."""
    score = STRATEGIES[strategy]
    scores = [score(option, load, history) for option in options]
    least = min(scores)
    best = [option for option, own in zip(options, scores, strict=True) if own == least]
    return min(best, key=lambda option: (option.priority, option.size)), scores
