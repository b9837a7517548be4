"""The engine seen from outside: a thread-safe facade that only exchanges messages.

The window, the server and the command line use nothing else of the engine. Every method may be called from
any thread and returns at once unless its docstring says otherwise.
"""

import asyncio
import contextlib
import logging
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import filelock

from laya_desktop.config.schema import Config
from laya_desktop.config.store import ConfigStore
from laya_desktop.core.errors import ErrorCode, ErrorInfo, LayaError
from laya_desktop.core.events import (
    TERMINAL,
    EngineEvent,
    Failed,
    MemorySample,
    ModelsChanged,
    ModelStatus,
    RequestEvent,
)
from laya_desktop.core.paths import Paths
from laya_desktop.core.types import ChatRequest, Decision, Explanation
from laya_desktop.engine.engine import Engine
from laya_desktop.engine.executor import ExecutorFactory, create_executor

log = logging.getLogger(__name__)

T = TypeVar("T")

RequestSink = Callable[[RequestEvent], None]
"""Receives a request's events on the engine thread, in order; must not block."""
EngineSink = Callable[[EngineEvent], None]
"""Receives engine events on the engine thread; must not block."""


class EngineHandle:
    """Owns the engine thread. Make one per process, and call `stop` before the process ends."""

    def __init__(
        self, store: ConfigStore, paths: Paths, executor_factory: ExecutorFactory = create_executor
    ) -> None:
        """`store` has been loaded and belongs to the engine from now on."""
        self._store = store
        self._paths = paths
        self._executor_factory = executor_factory
        self._lock = filelock.FileLock(paths.data / "engine.lock", thread_local=False)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._engine: Engine | None = None
        self._stopping: asyncio.Event | None = None
        self._failure: Exception | None = None
        self._sinks: tuple[EngineSink, ...] = ()
        self._models: dict[str, ModelStatus] = {}
        self._memory: MemorySample | None = None

    def start(self) -> None:
        """Start the engine thread; blocks until it takes requests (a fifth of a second). Raises LayaError if
        another process runs an engine on the same data folder."""
        try:
            self._paths.create()
            self._lock.acquire(blocking=False)
        except filelock.Timeout:
            raise LayaError(
                ErrorCode.INVALID_REQUEST,
                f"Another Laya Desktop is using {self._paths.data}.",
                hint="Use that one, quit it first, or set LAYA_HOME to another folder.",
            ) from None
        except OSError as error:
            raise LayaError(
                ErrorCode.INVALID_REQUEST,
                f"{error.filename or self._paths.data} cannot be used: {error.strerror}.",
                hint="Make the folder writable, or set LAYA_HOME to another one.",
            ) from error
        ready = threading.Event()
        self._thread = threading.Thread(target=self._main, args=(ready,), name="engine", daemon=True)
        self._thread.start()
        ready.wait()
        if self._failure is not None:
            self.stop()
            raise LayaError(
                ErrorCode.INTERNAL, f"The engine cannot start: {self._failure}."
            ) from self._failure

    def end_requests(self) -> None:
        """Fail every request, and all that are still to come: the first step of a stop, so that clients
        learn of it while the server can still tell them."""
        with contextlib.suppress(LayaError):
            self._call(lambda engine: engine.end_requests())

    def stop(self, timeout_s: float = 15.0) -> bool:
        """End every request, every worker and the thread; blocks up to `timeout_s`. Idempotent.

        False if something hangs (a thread that reads from a dead disk, say): then only `os._exit` helps.
        """
        if self._thread is None:
            return True
        loop = self._loop
        if loop is not None and self._stopping is not None:
            with contextlib.suppress(RuntimeError):  # the loop ended by itself
                loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            log.error("the engine thread did not end within %.0f s", timeout_s)
            return False
        self._thread = None
        self._lock.release()
        return True

    @property
    def config(self) -> Config:
        """The config in effect (immutable)."""
        return self._store.config

    @property
    def config_problems(self) -> tuple[str, ...]:
        """What is wrong with the file on disk; empty if it is in effect."""
        return tuple(str(problem) for problem in self._store.problems)

    @property
    def models(self) -> tuple[ModelStatus, ...]:
        """Latest known state of every model, in config order."""
        return tuple(self._models.values())

    @property
    def memory(self) -> MemorySample | None:
        """Latest sample; None before the first."""
        return self._memory

    def subscribe(self, sink: EngineSink) -> Callable[[], None]:
        """Receive engine events from now on; call the result to stop."""
        self._sinks = (*self._sinks, sink)

        def unsubscribe() -> None:
            self._sinks = tuple(other for other in self._sinks if other is not sink)

        return unsubscribe

    def submit(self, request: ChatRequest, sink: RequestSink) -> None:
        """Submit a request; `sink` gets its events, exactly one terminal one among them."""
        try:
            self._call(lambda engine: engine.submit(request, sink))
        except LayaError as error:
            sink(Failed(error=error.info))

    def route(self, request: ChatRequest) -> "Future[Decision]":
        """Which model would answer, without running it; the future raises LayaError.

        On the engine's own thread, where the server calls it, the future is done at once.
        """
        decided: Future[Decision] = Future()

        def decide(engine: Engine) -> None:
            if decided.set_running_or_notify_cancel():
                try:
                    decided.set_result(engine.route(request))
                except Exception as error:
                    decided.set_exception(error)

        if self._engine is not None and threading.current_thread() is self._thread:
            decide(self._engine)
        else:
            self._call(decide)
        return decided

    def cancel(self, request_id: str) -> None:
        """End a request; unknown or finished ids are ignored."""
        with contextlib.suppress(LayaError):
            self._call(lambda engine: engine.cancel(request_id))

    async def stream(self, request: ChatRequest) -> AsyncGenerator[RequestEvent, None]:
        """The same as `submit`, as an async iterator for any running asyncio loop (the engine's too).

        Closing the iterator early, or cancelling its task, cancels the request.
        """
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[RequestEvent] = asyncio.Queue()
        if loop is self._loop:
            sink: RequestSink = events.put_nowait
        else:

            def sink(event: RequestEvent) -> None:
                with contextlib.suppress(RuntimeError):  # the reader's loop is closed
                    loop.call_soon_threadsafe(events.put_nowait, event)

        self.submit(request, sink)
        try:
            while True:
                event = await events.get()
                yield event
                if isinstance(event, TERMINAL):
                    return
        finally:
            self.cancel(request.id)

    def explain(self, request: ChatRequest) -> "Future[Explanation]":
        """The same decision with everything that led to it."""
        return self._run_engine(lambda engine: engine.explain(request))

    def load(self, model: str) -> "Future[None]":
        """Warm a model; the future raises LayaError if that fails."""
        return self._run_engine(lambda engine: engine.load(model))

    def unload(self, model: str) -> "Future[None]":
        """End the model's streams with `Failed(model_unloaded)` and free it."""
        return self._run_engine(lambda engine: engine.unload(model))

    def set_config(self, key: str, value: object) -> "Future[None]":
        """Change one key (``ui.theme``) in the config file and apply it; the future raises LayaError."""
        return self._run_engine(lambda engine: engine.set_config(key, value))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run a coroutine on the engine's loop: this is how the HTTP server lives in the engine thread."""
        if self._loop is None:
            coroutine.close()
            raise _stopped()
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise _stopped() from None

    def _run_engine(self, start: Callable[[Engine], Coroutine[Any, Any, T]]) -> "Future[T]":
        if self._engine is None:
            raise _stopped()
        return self.run(start(self._engine))

    def _call(self, action: Callable[[Engine], None]) -> None:
        if self._loop is None or self._engine is None:
            raise _stopped()
        try:
            self._loop.call_soon_threadsafe(action, self._engine)
        except RuntimeError:
            raise _stopped() from None

    # The engine thread

    def _main(self, ready: threading.Event) -> None:
        try:
            with asyncio.Runner(loop_factory=_new_loop) as runner:
                runner.run(self._live(ready))
        except Exception as failure:
            self._failure = failure
            log.exception("the engine ended unexpectedly")
        finally:
            self._loop = self._engine = None
            ready.set()

    async def _live(self, ready: threading.Event) -> None:
        self._stopping = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        try:
            engine = Engine(self._store, self._paths, self._publish, self._executor_factory)
            async with engine:
                self._engine = engine
                ready.set()
                await self._stopping.wait()
        finally:
            await _cancel_remaining()

    def _publish(self, event: EngineEvent) -> None:
        if isinstance(event, ModelsChanged):
            self._models = {model.name: model for model in event.models}
        elif isinstance(event, ModelStatus):
            if event.name in self._models:
                self._models = self._models | {event.name: event}
        elif isinstance(event, MemorySample):
            self._memory = event
        for sink in self._sinks:
            try:
                sink(event)
            except Exception:
                log.exception("a subscriber failed")


def _new_loop() -> asyncio.AbstractEventLoop:
    """The system's own loop, not the loop policy's: with a window, that policy makes Qt loops."""
    if sys.platform == "win32":
        return asyncio.ProactorEventLoop()
    return asyncio.SelectorEventLoop()


async def _cancel_remaining() -> None:
    """End what runs beside the engine on its loop (the HTTP server) before the loop closes."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _stopped() -> LayaError:
    return LayaError.of(ErrorInfo(code=ErrorCode.ENGINE_STOPPED, message="The engine is not running."))
