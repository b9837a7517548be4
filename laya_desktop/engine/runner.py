"""One model's life: cold → loading → warm ⇄ busy → unloading → cold, and failed.

`ModelRunner` is the only writer of that state. Everything runs on the engine's loop.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from laya_desktop.core.errors import ErrorCode, ErrorInfo, LayaError
from laya_desktop.core.events import (
    TERMINAL,
    Delta,
    Failed,
    Finished,
    Loading,
    ModelStatus,
    RequestEvent,
)
from laya_desktop.core.types import ChatRequest, LoadedInfo, LoadSpec, ModelInfo, ModelState
from laya_desktop.engine.retry import Backoff
from laya_desktop.worker.process import Worker, WorkerFactory
from laya_desktop.worker.protocol import (
    Cancel,
    Events,
    Generate,
    Load,
    Loaded,
    LoadFailed,
    LoadProgress,
    Report,
    UseThreads,
)

log = logging.getLogger(__name__)

EventSink = Callable[[RequestEvent], None]
Prepare = Callable[[], Awaitable[tuple[ModelInfo, LoadSpec]]]
"""Reads a model's files before it is loaded: their metadata, and the spec with all that was read into it."""


@dataclass
class _Stream:
    """One running generation. `done` resolves when its worker has let go of the slot."""

    sink: EventSink
    done: asyncio.Future[ErrorInfo | None]
    has_text: bool = False


class ModelRunner:
    """Loads one model on demand, hands it requests and passes their events on."""

    def __init__(
        self,
        spec: LoadSpec,
        prepare: Prepare,
        create_worker: WorkerFactory,
        load_turn: asyncio.Lock,
        on_status: Callable[[ModelStatus], None],
    ) -> None:
        """`prepare` reads what the files say and raises LayaError with the reason if they are unusable;
        `load_turn` is shared by all models, so that only one loads at a time."""
        self.spec = spec
        self.load_timeout_s = 300.0
        self.idle_unload_s: float | None = None
        self.last_load_s = 0.0  # without waiting for its turn
        self._prepare = prepare
        self._create_worker = create_worker
        self._load_turn = load_turn
        self._on_status = on_status
        self._worker: Worker | None = None
        self._ready: asyncio.Task[None] | None = None
        self._load_report: asyncio.Future[LoadedInfo] | None = None
        self._unloading: asyncio.Task[None] | None = None
        self._streams: dict[str, _Stream] = {}
        self._users = 0
        self._stale = False
        self._idle_timer: asyncio.TimerHandle | None = None
        self._threads = spec.threads
        self._backoff = Backoff()
        self._state = ModelState.COLD
        self._progress: float | None = None
        self._info: ModelInfo | None = None
        self._loaded: LoadedInfo | None = None
        self._error: ErrorInfo | None = None
        self._answers = 0
        self._memory_bytes: int | None = None
        self._progress_sinks: set[EventSink] = set()

    @property
    def pid(self) -> int | None:
        return self._worker.pid if self._worker else None

    @property
    def idle(self) -> bool:
        """True if unloading would disturb nobody."""
        return not self._users and not self._streams and self._ready is None

    @property
    def is_unusable(self) -> bool:
        """True while the model's files cannot be used, as far as is known."""
        return self._state is ModelState.COLD and self._error is not None

    @property
    def busy(self) -> bool:
        """True while streams are computed."""
        return bool(self._streams)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Not idle inside the block. The time to live counts from the end of the last one."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._watch_idleness()

    def use_threads(self, count: int) -> None:
        """Let the worker compute with `count` threads from its next step on."""
        if self._worker is not None and count != self._threads:
            self._threads = count
            self._worker.send(UseThreads(count))

    def measured(self, memory_bytes: int | None) -> None:
        """Take over what the worker was measured to hold; told to others when it moved by a mebibyte."""
        if abs((memory_bytes or 0) - (self._memory_bytes or 0)) >= 1 << 20:
            self._memory_bytes = memory_bytes
            self._publish()

    def status(self) -> ModelStatus:
        state = self._state
        if state is ModelState.WARM and self._streams:
            state = ModelState.BUSY
        return ModelStatus(
            name=self.spec.name,
            backend=self.spec.backend,
            path=self.spec.path,
            state=state,
            streams=len(self._streams),
            progress=self._progress,
            memory_bytes=self._memory_bytes,
            answers=self._answers,
            info=self._info,
            loaded=self._loaded,
            error=self._error,
            retry_at=self._backoff.retry_at,
        )

    def configure(self, spec: LoadSpec, prepare: Prepare) -> None:
        """Take over new settings. A loaded model answers with the old ones until it is idle, then it is
        unloaded, and loaded anew for the next request."""
        self.spec = spec
        self._prepare = prepare
        self._stale = True
        self._watch_idleness()

    async def inspect(self) -> None:
        """Read the file's metadata, so that its card and the router know it before it is loaded."""
        before = self.status()
        try:
            self._info, _ = await self._prepare()
            if self._state is not ModelState.FAILED:
                self._error = None
        except LayaError as error:
            self._error = error.info
        if self.status() != before:
            self._publish()

    # Loading

    async def ensure_ready(self, sink: EventSink, *, forced: bool = False) -> None:
        """Return when the model is warm; joins a load in flight. `sink` gets Loading events.

        `forced` ignores the waiting time after repeated failures. Raises LayaError.
        """
        while self._unloading is not None:
            await asyncio.shield(self._unloading)
        if self._state is ModelState.WARM:
            return
        if self._ready is None:
            if not forced:
                self._backoff.check(self.spec.name, self._error)
            self._ready = asyncio.create_task(self._load(), name=f"load-{self.spec.name}")
            self._ready.add_done_callback(self._load_ended)
        loading = self._ready
        self._progress_sinks.add(sink)
        sink(Loading(model=self.spec.name, progress=self._progress or 0.0))
        try:
            await asyncio.shield(loading)
        except asyncio.CancelledError:
            if loading.cancelled():
                raise _unloaded(self.spec.name) from None
            raise
        finally:
            self._progress_sinks.discard(sink)

    def _load_ended(self, task: asyncio.Task[None]) -> None:
        """Runs also for a load that was cancelled before its first step. Everybody who waited may be gone:
        a failure is in the state, not only in the task."""
        self._ready = None
        if not task.cancelled():
            task.exception()
        self._watch_idleness()

    async def _load(self) -> None:
        self._error = None
        self._stale = False
        self._set(ModelState.LOADING, progress=0.0)
        spec = await self._read_files()
        try:
            async with self._load_turn:
                async with asyncio.timeout(self.load_timeout_s):
                    started = time.monotonic()
                    self._loaded = await self._start_worker(spec)
                    self.last_load_s = time.monotonic() - started
            self._set(ModelState.WARM)
        except TimeoutError:
            await self._discard_worker()
            error = self._too_slow()
            self._fail(error.info)
            raise error from None
        except LayaError as error:
            await self._discard_worker()
            self._fail(error.info)
            raise
        except asyncio.CancelledError:
            await self._discard_worker()
            self._set(ModelState.COLD)
            raise
        except Exception as failure:
            log.exception("loading %s failed", self.spec.name)
            await self._discard_worker()
            unexpected = LayaError(ErrorCode.INTERNAL, f"Loading '{self.spec.name}' failed: {failure}.")
            self._fail(unexpected.info)
            raise unexpected from failure

    async def _read_files(self) -> LoadSpec:
        """Look at the files before it is this model's turn to load: a disk that hangs holds up nobody else.
        Unusable files do not count as failures of the model: looking again costs nothing."""
        try:
            async with asyncio.timeout(self.load_timeout_s):
                self._info, spec = await self._prepare()
        except BaseException as failure:
            if isinstance(failure, TimeoutError):
                failure = self._too_slow()
            self._error = failure.info if isinstance(failure, LayaError) else None
            self._set(ModelState.COLD)
            raise failure
        return spec

    def _too_slow(self) -> LayaError:
        return LayaError(
            ErrorCode.MODEL_LOAD_FAILED,
            f"Loading '{self.spec.name}' took longer than {self.load_timeout_s:.0f} s.",
            hint="Raise scheduler.load_timeout_s if the disk is slow.",
        )

    async def _start_worker(self, spec: LoadSpec) -> LoadedInfo:
        self._load_report = asyncio.get_running_loop().create_future()
        worker = self._create_worker(self.spec.name, self._on_report, self._on_exit)
        try:
            await worker.start()
        except OSError as error:
            raise LayaError(
                ErrorCode.MODEL_LOAD_FAILED, f"The worker of '{self.spec.name}' cannot start: {error}."
            ) from error
        self._worker = worker
        self._threads = spec.threads
        worker.send(Load(spec))
        return await self._load_report

    async def _discard_worker(self) -> None:
        worker, self._worker, self._load_report = self._worker, None, None
        if worker is not None:
            worker.kill()
            await worker.stop()

    # Generating

    async def generate(self, request: ChatRequest, sink: EventSink) -> ErrorInfo | None:
        """Run one request on the warm model and return when its slot is free again.

        Events go to `sink`, the terminal one included, except a failure before the first text: that is
        returned, so that the caller may try another model.
        """
        if self._worker is None:
            return _unloaded(self.spec.name).info
        self._worker.send(Generate(request.id, request.messages, request.sampling))
        stream = _Stream(sink, asyncio.get_running_loop().create_future())
        self._streams[request.id] = stream
        self._publish()
        return await stream.done

    def cancel(self, request_id: str) -> None:
        """Ask the worker to let go of a stream; `generate` returns when it has."""
        if request_id in self._streams and self._worker is not None:
            self._worker.send(Cancel(request_id))

    def _on_report(self, report: Report) -> None:
        match report:
            case Events(items=items):
                for item in items:
                    if stream := self._streams.get(item.request_id):
                        self._forward(item.request_id, stream, item.event)
            case LoadProgress(fraction=fraction):
                self._progress = fraction
                self._publish()
                for sink in list(self._progress_sinks):
                    sink(Loading(model=self.spec.name, progress=fraction))
            case Loaded(info=info):
                if self._load_report is not None and not self._load_report.done():
                    self._load_report.set_result(info)
            case LoadFailed(error=error):
                if self._load_report is not None and not self._load_report.done():
                    self._load_report.set_exception(LayaError.of(error))

    def _forward(self, request_id: str, stream: _Stream, event: RequestEvent) -> None:
        if isinstance(event, Failed) and not stream.has_text:
            self._release(request_id, event.error)
            return
        if isinstance(event, Delta):
            stream.has_text = True
        stream.sink(event)
        if isinstance(event, Finished):
            self._answers += 1
            self._backoff.reset()
        if isinstance(event, TERMINAL):
            self._release(request_id, None)

    def _release(self, request_id: str, error: ErrorInfo | None) -> None:
        stream = self._streams.pop(request_id)
        if not stream.done.done():
            stream.done.set_result(error)
        self._publish()

    # Ending

    def _watch_idleness(self) -> None:
        """Start the time to live anew. It runs on the loop's monotonic clock: a sleeping machine or a changed
        wall clock ends nothing."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        wait = 0.0 if self._stale else self.idle_unload_s
        if wait is not None and self._state is ModelState.WARM and self.idle:
            self._idle_timer = asyncio.get_running_loop().call_later(wait, self._end_idleness)

    def _end_idleness(self) -> None:
        self._idle_timer = None
        if self._state is ModelState.WARM and self.idle and self._unloading is None:
            self._start_unloading()

    def _start_unloading(self) -> asyncio.Task[None]:
        if self._unloading is None:
            self._unloading = asyncio.create_task(self._unload(), name=f"unload-{self.spec.name}")
        return self._unloading

    async def unload(self) -> None:
        """End all streams with an error and free the model. A load in flight is cancelled. Idempotent."""
        await asyncio.shield(self._start_unloading())

    async def _unload(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        try:
            if self._ready is not None:
                self._ready.cancel()
                with contextlib.suppress(asyncio.CancelledError, LayaError):
                    await self._ready
            if self._worker is not None:
                self._set(ModelState.UNLOADING)
                worker, self._worker = self._worker, None
                self._end_streams(_unloaded(self.spec.name).info)
                await worker.stop()
            self._loaded = None
            self._error = None
            self._backoff.reset()
            self._set(ModelState.COLD)
        finally:
            self._unloading = None

    def _on_exit(self, error: ErrorInfo) -> None:
        """The child ended. After `unload` or `_discard_worker` that is as planned."""
        if self._load_report is not None and not self._load_report.done():
            self._load_report.set_exception(LayaError.of(error))
            return
        if self._worker is None or self._state is not ModelState.WARM:
            return
        log.warning("%s", error.message)
        self._worker = None
        self._loaded = None
        self._end_streams(error)
        self._fail(error)

    def _end_streams(self, error: ErrorInfo) -> None:
        for request_id, stream in list(self._streams.items()):
            if stream.has_text:
                stream.sink(Failed(error=error))
                self._release(request_id, None)
            else:
                self._release(request_id, error)

    def _fail(self, error: ErrorInfo) -> None:
        self._error = error
        self._backoff.failed(time.time())
        self._set(ModelState.FAILED)

    def _set(self, state: ModelState, *, progress: float | None = None) -> None:
        self._state = state
        self._progress = progress
        self._publish()

    def _publish(self) -> None:
        self._on_status(self.status())


def _unloaded(name: str) -> LayaError:
    return LayaError(
        ErrorCode.MODEL_UNLOADED, f"'{name}' was unloaded.", hint="Send the prompt again to load it."
    )
