"""The backend protocol: what a file in this folder must offer to serve a model format.

A backend lives in a worker process and is driven by its main loop (worker/main.py), one call at a time, from
one thread. It is a small serving engine: requests join between steps, every `step` computes one batch for all
streams and returns what happened.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from laya_desktop.core.events import WorkerEvent
from laya_desktop.core.types import LoadedInfo, LoadSpec, Message, Sampling


class StreamEvent(msgspec.Struct, frozen=True, array_like=True):
    """An event of one stream, as it travels in a frame."""

    request_id: str
    event: WorkerEvent


class Backend(Protocol):
    """Serves one model. Every method is called from the worker's main thread only."""

    def load(self, spec: LoadSpec, on_progress: Callable[[float], None]) -> LoadedInfo:
        """Load the model; `on_progress` gets 0…1. Raises LayaError with the reason."""
        ...

    def submit(self, request_id: str, messages: Sequence[Message], sampling: Sampling) -> None:
        """Queue a request; it joins at the next step. A request that cannot be served (template refuses it,
        prompt longer than the context) gets a `Failed` event from the next step; nothing is raised."""
        ...

    def cancel(self, request_id: str) -> None:
        """Leave before the next batch; the next step reports `Cancelled`. Unknown ids are ignored."""
        ...

    @property
    def has_work(self) -> bool:
        """True while a step would do something."""
        ...

    def step(self) -> list[StreamEvent]:
        """Compute one batch for all streams and return their events, in order."""
        ...

    def use_threads(self, count: int) -> None:
        """Compute with `count` threads from the next step on."""
        ...

    def close(self) -> None:
        """Free the model. The backend is not used afterwards."""
        ...
