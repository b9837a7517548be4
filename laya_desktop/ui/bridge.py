"""The one boundary between the window and the engine.

Events arrive on the engine thread, wait in a deque, and reach the UI thread by one queued signal, at most
60 times a second. No engine call here waits; blocking work (SQLite, the config file) runs in one worker
thread, in order, and its result comes back the same way.
"""

import logging
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

from PySide6.QtCore import QElapsedTimer, QObject, Qt, QTimer, Signal

from laya_desktop.config.schema import Config
from laya_desktop.core.errors import ErrorCode, ErrorInfo, LayaError
from laya_desktop.core.events import (
    TERMINAL,
    ConfigApplied,
    ConfigRejected,
    EngineEvent,
    MemorySample,
    ModelsChanged,
    ModelStatus,
    Notice,
    QueueChanged,
    RequestEvent,
    Routed,
)
from laya_desktop.core.types import ChatRequest
from laya_desktop.engine.handle import EngineHandle

T = TypeVar("T")
OnEvents = Callable[[list[RequestEvent]], None]
OnError = Callable[[ErrorInfo], None]

_INTERVAL_MS: Final = 17
_log = logging.getLogger(__name__)


class Bridge(QObject):
    """Lives in the UI thread: its methods are called there, its signals and callbacks come there."""

    models_changed = Signal(tuple)
    """All models (`ModelStatus`), in config order."""
    memory_changed = Signal(object)
    """The newest `MemorySample`."""
    queue_changed = Signal(int, int)
    """Requests running and waiting."""
    notice = Signal(object)
    decided = Signal(object)
    """The `Decision` of a request that this window submitted."""
    config_applied = Signal()
    config_rejected = Signal(tuple)
    """One sentence per problem."""
    _wake = Signal()

    def __init__(self, handle: EngineHandle, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._handle = handle
        self._inbox: deque[Callable[[], None] | tuple[str, RequestEvent] | EngineEvent] = deque()
        self._awake = False
        self._closed = False
        self._listeners: dict[str, OnEvents] = {}
        self._models = {status.name: status for status in handle.models}
        self._memory = handle.memory
        self._queue = (0, 0)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="window-io")
        self._since = QElapsedTimer()
        self._since.start()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._deliver)
        self._wake.connect(self._schedule, Qt.ConnectionType.QueuedConnection)
        self._unsubscribe = handle.subscribe(self._post)

    @property
    def config(self) -> Config:
        """The config in effect (immutable)."""
        return self._handle.config

    @property
    def config_problems(self) -> tuple[str, ...]:
        """What is wrong with the config file; empty if it is in effect."""
        return self._handle.config_problems

    @property
    def models(self) -> tuple[ModelStatus, ...]:
        """Every model as last delivered, in config order."""
        return tuple(self._models.values())

    def model(self, name: str) -> ModelStatus | None:
        """One model as last delivered."""
        return self._models.get(name)

    @property
    def memory(self) -> MemorySample | None:
        """The newest sample delivered."""
        return self._memory

    @property
    def queue(self) -> tuple[int, int]:
        """Requests running and waiting."""
        return self._queue

    def refresh(self) -> None:
        """Read the whole state again, after the engine has started."""
        self._models = {status.name: status for status in self._handle.models}
        self.models_changed.emit(self.models)
        self.config_applied.emit()

    def submit(self, request: ChatRequest, on_events: OnEvents) -> None:
        """Submit a request; `on_events` gets its events in batches, the terminal event last."""
        self._listeners[request.id] = on_events
        request_id = request.id
        self._handle.submit(request, lambda event: self._post((request_id, event)))

    def cancel(self, request_id: str) -> None:
        """End a request; its terminal event still comes."""
        self._handle.cancel(request_id)

    def load(self, model: str, on_error: OnError) -> None:
        """Warm a model."""
        self._ask(lambda: self._handle.load(model), on_error)

    def unload(self, model: str, on_error: OnError) -> None:
        """Free a model."""
        self._ask(lambda: self._handle.unload(model), on_error)

    def set_config(self, key: str, value: object, on_error: OnError) -> None:
        """Write one setting (`ui.theme`) to the config file and apply it."""
        self._ask(lambda: self._handle.set_config(key, value), on_error)

    def background(
        self,
        work: Callable[[], T],
        done: Callable[[T], None] | None = None,
        failed: OnError | None = None,
    ) -> None:
        """Run blocking `work` in the worker thread, after all earlier work."""
        if not self._closed:
            self._follow(self._pool.submit(work), done, failed)

    def post(self, call: Callable[[], None]) -> None:
        """Run `call` in the UI thread; may be called from any thread."""
        self._post(call)

    def close(self) -> None:
        """Let go of the engine and finish the work in the worker thread; blocks for that long. Idempotent."""
        if self._closed:
            return
        self._unsubscribe()
        for request_id in list(self._listeners):
            self._handle.cancel(request_id)
        self._closed = True
        self._timer.stop()
        self._inbox.clear()
        self._listeners.clear()
        self._pool.shutdown(wait=True)

    def _ask(self, start: Callable[[], Future[None]], on_error: OnError) -> None:
        try:
            future = start()
        except LayaError as problem:
            on_error(problem.info)
        else:
            self._follow(future, None, on_error)

    def _follow(self, future: Future[T], done: Callable[[T], None] | None, failed: OnError | None) -> None:
        def finished(completed: Future[T]) -> None:
            try:
                result = completed.result()
            except CancelledError:
                return
            except Exception as problem:
                error = _as_info(problem)
                if failed is not None:
                    self._post(lambda: failed(error))
                return
            if done is not None:
                self._post(lambda: done(result))

        future.add_done_callback(finished)

    def _post(self, item: Any) -> None:
        """Any thread."""
        if self._closed:
            return
        self._inbox.append(item)
        if not self._awake:
            self._awake = True
            self._wake.emit()

    def _schedule(self) -> None:
        wait = _INTERVAL_MS - self._since.elapsed()
        if wait <= 0:
            self._deliver()
        elif not self._timer.isActive():
            self._timer.start(wait)

    def _deliver(self) -> None:
        # Cleared before draining: what comes while we drain wakes us again.
        self._awake = False
        self._since.restart()
        batches: dict[str, list[RequestEvent]] = {}
        calls: list[Callable[[], None]] = []
        statuses = False
        for _ in range(len(self._inbox)):
            item = self._inbox.popleft()
            if isinstance(item, tuple):
                batches.setdefault(item[0], []).append(item[1])
            elif isinstance(item, ModelStatus):
                self._models[item.name] = item
                statuses = True
            elif isinstance(item, ModelsChanged):
                self._models = {status.name: status for status in item.models}
                statuses = True
            elif callable(item):
                calls.append(item)
            else:
                _guarded(lambda event=item: self._announce(event))
        if statuses:
            _guarded(lambda: self.models_changed.emit(self.models))
        for request_id, events in batches.items():
            self._hand_over(request_id, events)
        for call in calls:
            _guarded(call)

    def _hand_over(self, request_id: str, events: list[RequestEvent]) -> None:
        listener = self._listeners.get(request_id)
        if listener is None:
            return
        if isinstance(events[-1], TERMINAL):
            del self._listeners[request_id]
        for event in events:
            if isinstance(event, Routed):
                _guarded(lambda decision=event.decision: self.decided.emit(decision))
        _guarded(lambda: listener(events))

    def _announce(self, event: EngineEvent) -> None:
        match event:
            case MemorySample():
                self._memory = event
                self.memory_changed.emit(event)
            case QueueChanged(running=running, waiting=waiting):
                self._queue = (running, waiting)
                self.queue_changed.emit(running, waiting)
            case Notice():
                self.notice.emit(event)
            case ConfigApplied():
                self.config_applied.emit()
            case ConfigRejected(problems=problems):
                self.config_rejected.emit(tuple(problems))


def _guarded(call: Callable[[], Any]) -> None:
    """One failing receiver must not swallow what the others wait for."""
    try:
        call()
    except Exception:
        sys.excepthook(*sys.exc_info())


def _as_info(problem: Exception) -> ErrorInfo:
    if isinstance(problem, LayaError):
        return problem.info
    _log.error("work for the window failed", exc_info=problem)
    return ErrorInfo(code=ErrorCode.INTERNAL, message=f"{type(problem).__name__}: {problem}")
