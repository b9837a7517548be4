"""The engine seen from outside: a thread-safe facade that only exchanges messages.

The window, the server and the command line use nothing else of the engine. Every method may be called from
any thread and returns at once unless its docstring says otherwise.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from laya_desktop.config.schema import Config
from laya_desktop.config.store import ConfigStore
from laya_desktop.core.events import EngineEvent, MemorySample, ModelStatus, RequestEvent
from laya_desktop.core.paths import Paths
from laya_desktop.core.types import ChatRequest

T = TypeVar("T")

RequestSink = Callable[[RequestEvent], None]
"""Receives a request's events on the engine thread, in order; must not block."""
EngineSink = Callable[[EngineEvent], None]
"""Receives engine events on the engine thread; must not block."""


class EngineHandle:
    def __init__(self, store: ConfigStore, paths: Paths) -> None: ...

    def start(self) -> None:
        """Start the engine thread; blocks until its loop runs. Raises LayaError if another engine owns the data folder."""

    def stop(self, timeout_s: float = 10.0) -> None:
        """Cancel everything, end all workers and the thread; blocks. Idempotent."""

    @property
    def config(self) -> Config:
        """The config in effect (immutable)."""
        ...

    @property
    def models(self) -> tuple[ModelStatus, ...]:
        """Latest known state of every model, in config order."""
        ...

    @property
    def memory(self) -> MemorySample | None:
        """Latest sample; None before the first."""
        ...

    def subscribe(self, sink: EngineSink) -> Callable[[], None]:
        """Receive engine events from now on; call the result to stop."""
        ...

    def submit(self, request: ChatRequest, sink: RequestSink) -> None:
        """Submit a request; `sink` gets its events, exactly one terminal one among them."""

    def cancel(self, request_id: str) -> None:
        """End a request; unknown or finished ids are ignored."""

    def stream(self, request: ChatRequest) -> AsyncIterator[RequestEvent]:
        """The same as `submit`, as an async iterator for any running asyncio loop (the engine's too).
        Closing the iterator early (aclose, or cancelling its task) cancels the request."""
        ...

    def load(self, model: str) -> Future[None]:
        """Warm a model; the future raises LayaError if that fails."""
        ...

    def unload(self, model: str) -> Future[None]:
        """End the model's streams with `Failed(model_unloaded)` and free it."""
        ...

    def run(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the engine's loop: this is how the HTTP server lives in the engine thread."""
        ...
