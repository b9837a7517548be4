"""What the router chooses from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from laya_desktop.core.events import ModelStatus


@dataclass(frozen=True, slots=True)
class Situation:
    """`models` in config order, by name; `waiting` tells the length of a model's queue; `now` is wall-clock
    seconds, as in `ModelStatus.retry_at`."""

    models: Mapping[str, ModelStatus]
    now: float
    waiting: Callable[[str], int] = lambda model: 0
    memory_low: bool = False
