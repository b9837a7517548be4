"""How to choose among models that may answer. A strategy is one function that gives a score: the lowest wins.

Equal scores are decided by `priority`, then by size, then by the order in the config.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from laya_desktop.config.schema import Strategy
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import ModelState
from laya_desktop.engine.history import Expected, History

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
    speeds = history.expected(option.name, option.size)
    streams = option.status.streams
    length = speeds.completion if load.limit is None else min(speeds.completion, load.limit)
    writing = length / speeds.decode * (1 + _SHARE * min(streams, option.slots - 1))
    reading = max(0, load.tokens - option.cached) / speeds.prefill
    ahead = option.waiting + max(0, streams - option.slots + 1)
    queue = ahead * speeds.completion / speeds.decode / option.slots
    return queue + _loading_s(option.status, speeds) + reading + writing


def _loading_s(status: ModelStatus, speeds: Expected) -> float:
    match status.state:
        case ModelState.WARM | ModelState.BUSY:
            return 0.0
        case ModelState.LOADING:
            return speeds.load_s * (1 - (status.progress or 0.0))
    return speeds.load_s


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
    best = min(zip(scores, options, strict=True), key=lambda pair: (pair[0], pair[1].priority, pair[1].size))
    return best[1], scores
