"""The engine: router, scheduler and executor joined into one path. Lives on the engine's loop only."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from laya_desktop.config.schema import Config, ModelEntry
from laya_desktop.config.store import ConfigStore
from laya_desktop.core.errors import ErrorCode, ErrorInfo, LayaError
from laya_desktop.core.events import (
    Accepted,
    Cancelled,
    ConfigApplied,
    ConfigRejected,
    EngineEvent,
    Failed,
    Finished,
    ModelsChanged,
    ModelStatus,
    Notice,
    QueueChanged,
    Queued,
    RequestEvent,
    Routed,
)
from laya_desktop.core.paths import Paths
from laya_desktop.core.types import AUTO_MODEL, ChatRequest, Decision, Explanation, ModelState
from laya_desktop.engine.executor import Executor, ExecutorFactory
from laya_desktop.engine.history import Decided, HistoryFile
from laya_desktop.engine.memory import probes
from laya_desktop.engine.names import ModelNames
from laya_desktop.engine.retry import TRY_ANOTHER
from laya_desktop.engine.routing.conversations import Conversations
from laya_desktop.engine.routing.situation import Situation
from laya_desktop.engine.scheduler import Scheduler, limits_of
from laya_desktop.engine.starter import starter_models
from laya_desktop.engine.ticket import Ticket

if TYPE_CHECKING:
    from laya_desktop.engine.routing.router import Router

log = logging.getLogger(__name__)

_WATCH_INTERVAL_S = 1.0
_PLACES_DELAY_S = 0.1


class Engine:
    """Use as an async context manager: it is closed when the block ends."""

    def __init__(
        self,
        store: ConfigStore,
        paths: Paths,
        publish: Callable[[EngineEvent], None],
        executor_factory: ExecutorFactory,
    ) -> None:
        self._store = store
        self._paths = paths
        self._publish = publish
        self._executor: Executor = executor_factory(paths, self._on_status)
        self._scheduler = Scheduler(limits_of(store.config))
        self._names = ModelNames(())
        self._history_file = HistoryFile(paths.history)
        self._history = self._history_file.history
        self._conversations = Conversations()
        self._router: Router
        self._tickets: dict[str, Ticket] = {}
        self._models: dict[str, ModelStatus] = {}
        self._states: dict[str, ModelState] = {}
        self._memory_low = False
        self._closing = False
        self._expiry: asyncio.TimerHandle | None = None
        self._places: asyncio.TimerHandle | None = None
        self._watchers: list[asyncio.Task[None]] = []
        self._store_turn = asyncio.Lock()

    async def __aenter__(self) -> "Engine":
        await asyncio.to_thread(self._history_file.load)
        await self._apply_config()
        self._report_config_problems()
        self._executor.warm_up()
        self._watchers = [
            asyncio.create_task(self._watch_memory(), name="memory"),
            asyncio.create_task(self._watch_config(), name="config"),
            asyncio.create_task(self._history_file.keep(), name="history"),
        ]
        return self

    async def prepare(self) -> None:
        """Apply the config and read the model files, as far as `route` needs it. Starts no worker."""
        self._history_file.load()
        await self._apply_config()
        await self._executor.inspected()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_requests()
        for watcher in self._watchers:
            watcher.cancel()
        for timer in (self._expiry, self._places):
            if timer is not None:
                timer.cancel()
        await self._executor.close()
        await self._history_file.save()

    def end_requests(self) -> None:
        """Fail every request, and all that are still to come."""
        self._closing = True
        stopped = ErrorInfo(code=ErrorCode.ENGINE_STOPPED, message="The app is quitting.")
        for ticket in list(self._tickets.values()):
            ticket.emit(Failed(error=stopped))
            if ticket.task is None:
                self._end(ticket)
            else:
                ticket.task.cancel()

    # Requests

    def route(self, request: ChatRequest) -> Decision:
        """Decide without running anything. Raises LayaError."""
        self._refuse_when_closing()
        return self._router.decide(request, self._situation())[0]

    def submit(self, request: ChatRequest, sink: Callable[[RequestEvent], None]) -> None:
        """Route and queue a request; see EngineHandle.submit."""
        try:
            self._refuse_when_closing()
            decision, features = self._router.decide(request, self._situation())
        except LayaError as error:
            sink(Failed(error=error.info))
            return
        self._history.took_turn(decision.model)
        if features is not None:
            self._history.decisions.append(Decided(time.time(), request.id, features, decision))
        ticket = Ticket(request, sink, decision)
        self._tickets[request.id] = ticket
        ticket.emit(Routed(decision=decision))
        self._enqueue(ticket)

    def cancel(self, request_id: str) -> None:
        """Answer Cancelled at once; the slot is free when the worker has let go."""
        ticket = self._tickets.get(request_id)
        if ticket is None or ticket.ended:
            return
        ticket.emit(Cancelled())
        if ticket.task is None:
            self._end(ticket)
            self._pump()
        elif ticket.generating:
            self._executor.runner(ticket.decision.model).cancel(request_id)
        else:
            ticket.task.cancel()

    async def explain(self, request: ChatRequest) -> Explanation:
        """The decision with everything that led to it; see EngineHandle.explain."""
        return self._router.explain(request, self._situation())

    def _situation(self) -> Situation:
        return Situation(self._models, time.time(), self._scheduler.waiting_for, self._memory_low)

    def _refuse_when_closing(self) -> None:
        if self._closing:
            raise LayaError(ErrorCode.ENGINE_STOPPED, "The app is quitting.")

    def _enqueue(self, ticket: Ticket) -> None:
        try:
            place = self._scheduler.submit(
                ticket.request.id,
                ticket.decision.model,
                time.monotonic(),
                priority=ticket.priority,
                conversation=ticket.request.conversation_id,
            )
        except LayaError as error:
            self._end(ticket, Failed(error=error.info))
            return
        self._pump()
        if ticket.task is None:
            ticket.position = place
            ticket.emit(Queued(position=place))

    def _pump(self) -> None:
        """Start what can start. The others learn of their new places a little later, all at once."""
        started = self._scheduler.start(time.monotonic())
        for request_id in started:
            ticket = self._tickets[request_id]
            ticket.task = asyncio.create_task(self._attempt(ticket), name=f"request-{request_id}")
            # A task that is cancelled before it began never runs: only its callback is certain to.
            ticket.task.add_done_callback(partial(self._after_attempt, ticket))
        if started and self._scheduler.waiting and self._places is None:
            self._places = asyncio.get_running_loop().call_later(_PLACES_DELAY_S, self._tell_places)
        self._set_expiry()
        self._publish(QueueChanged(running=self._scheduler.running, waiting=self._scheduler.waiting))

    def _tell_places(self) -> None:
        self._places = None
        for request_id, position in self._scheduler.positions(time.monotonic()):
            ticket = self._tickets[request_id]
            if ticket.position != position:
                ticket.position = position
                ticket.emit(Queued(position=position))

    async def _attempt(self, ticket: Ticket) -> ErrorInfo | None:
        """Run a request on the model chosen for it; a failure before its first token is returned."""
        try:
            runner = self._executor.runner(ticket.decision.model)
            with runner.in_use():
                await runner.ensure_ready(ticket.emit)
                ticket.generating = True
                return await runner.generate(ticket.request, partial(self._on_event, ticket))
        except LayaError as failure:
            return failure.info
        except Exception as failure:
            log.exception("request %s failed", ticket.request.id)
            return ErrorInfo(code=ErrorCode.INTERNAL, message=f"Unexpected error: {failure}.")
        finally:
            ticket.generating = False

    def _on_event(self, ticket: Ticket, event: RequestEvent) -> None:
        """Learn from what a worker reports, and pass it on."""
        model = ticket.decision.model
        match event:
            case Accepted():
                self._conversations.remember(ticket.request, model, event.prompt_tokens)
            case Finished():
                self._history.observe(model, self._size(model), event.usage, event.timings)
        ticket.emit(event)

    def _size(self, model: str) -> int:
        """Bytes of a model's files, 0 if unknown."""
        status = self._models.get(model)
        return status.info.size_bytes if status and status.info else 0

    def _after_attempt(self, ticket: Ticket, task: asyncio.Task[ErrorInfo | None]) -> None:
        """The slot is free again, however the attempt ended."""
        ticket.task = None
        self._scheduler.remove(ticket.request.id)
        error = None if task.cancelled() else task.result()
        if error is None or not self._fall_back(ticket, error):
            self._end(ticket, Failed(error=error) if error else None)
            self._pump()

    def _fall_back(self, ticket: Ticket, error: ErrorInfo) -> bool:
        """Queue the request for the next fallback model. Only for requests that left the choice to us."""
        ticket.tried.append(ticket.decision.model)
        if ticket.ended or ticket.request.model != AUTO_MODEL or error.code not in TRY_ANOTHER:
            return False
        decision = self._router.fall_back(ticket.decision, ticket.tried, self._situation(), error)
        if decision is None:
            return False
        self._notice("fallback", decision.reason, decision.model)
        ticket.decision = decision
        ticket.emit(Routed(decision=decision))
        self._enqueue(ticket)
        return True

    def _end(self, ticket: Ticket, event: RequestEvent | None = None) -> None:
        """Forget a request, with its terminal event if that is still to be sent."""
        if event is not None:
            ticket.emit(event)
        self._scheduler.remove(ticket.request.id)
        self._tickets.pop(ticket.request.id, None)

    def _set_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        deadline = self._scheduler.next_deadline()
        if deadline is not None:
            delay = max(0.0, deadline - time.monotonic())
            self._expiry = asyncio.get_running_loop().call_later(delay, self._expire)

    def _expire(self) -> None:
        waited = self._scheduler.limits.queue_timeout_s
        for request_id in self._scheduler.expire(time.monotonic()):
            error = ErrorInfo(
                code=ErrorCode.QUEUE_TIMEOUT,
                message=f"No slot became free within {waited:g} s.",
                hint="Try again in a moment, or raise scheduler.queue_timeout_ms.",
                retry_after_s=1.0,
            )
            self._end(self._tickets[request_id], Failed(error=error))
        self._pump()

    # Models

    async def load(self, model: str) -> None:
        runner = self._executor.runner(self._names.resolve(model))
        await runner.ensure_ready(lambda event: None, forced=True)

    async def unload(self, model: str) -> None:
        await self._executor.runner(self._names.resolve(model)).unload()

    def _on_status(self, status: ModelStatus) -> None:
        """Publish a model's new state, and a notice for the timeline if it changed."""
        self._publish(status)
        if is_known := status.name in self._models:
            self._models[status.name] = status
        if status.state in (ModelState.BUSY, ModelState.WARM):
            self._executor.share_threads()
        before = self._states.get(status.name)
        self._states[status.name] = status.state
        if status.state is before:
            return
        match status.state:
            case ModelState.FAILED if status.error:
                self._notice("failed", status.error.message, status.name)
            case ModelState.WARM if before is ModelState.LOADING:
                if is_known:
                    seconds = self._executor.runner(status.name).last_load_s
                    self._history.loaded(status.name, self._size(status.name), seconds)
                self._notice("loaded", f"{status.name} is warm.", status.name)
            case ModelState.UNLOADING:
                self._notice("unloading", f"{status.name} is being unloaded.", status.name)

    def _notice(self, kind: str, text: str, model: str | None = None) -> None:
        log.info("%s: %s", kind, text)
        self._publish(Notice(at=time.time(), kind=kind, text=text, model=model))

    # Config and memory

    async def set_config(self, key: str, value: object) -> None:
        async with self._store_turn:
            await asyncio.to_thread(self._store.set, key, value)
            await self._apply_config()

    async def _apply_config(self) -> None:
        config = self._store.config
        entries = config.models or starter_models(self._paths)
        self._router = await asyncio.to_thread(self._make_router, config, entries)
        self._scheduler.limits = limits_of(config)
        self._names = ModelNames(entries)
        self._executor.apply(entries, config.executor, config.scheduler.load_timeout_s)
        statuses = self._executor.statuses()
        self._models = {status.name: status for status in statuses}
        self._publish(ModelsChanged(models=statuses))
        self._publish(ConfigApplied())
        self._pump()

    def _make_router(self, config: Config, entries: Sequence[ModelEntry]) -> "Router":
        """Imports numpy: in a pool thread, when the window is there. Compiles the rules. Blocks."""
        from laya_desktop.engine.routing.router import Router

        context = config.executor.stream_buffer
        return Router(config.router, entries, self._history, self._conversations, context)

    def _report_config_problems(self) -> None:
        if self._store.problems:
            self._publish(ConfigRejected(problems=tuple(map(str, self._store.problems))))
        for note in self._store.notes:
            self._notice("config", note)

    async def _watch_config(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_INTERVAL_S)
            with _logged("looking at the config file"):
                async with self._store_turn:
                    if not await asyncio.to_thread(self._store.poll):
                        continue
                    if await asyncio.to_thread(self._store.load):
                        await self._apply_config()
                self._report_config_problems()

    async def _watch_memory(self) -> None:
        while True:
            with _logged("measuring memory"):
                await self._sample_memory()
            self._executor.recheck()
            await asyncio.sleep(_WATCH_INTERVAL_S)

    async def _sample_memory(self) -> None:
        reserved_gb = self._store.config.memory.reserved_system_gb
        reserved = None if reserved_gb is None else int(reserved_gb * probes.GB)
        sample = await asyncio.to_thread(probes.sample, self._executor.workers(), reserved)
        self._memory_low = probes.is_low(sample, self._store.config.memory.offload_threshold_gb)
        self._publish(sample)
        for runner in self._executor.runners:
            runner.measured(sample.models.get(runner.spec.name))


@contextlib.contextmanager
def _logged(doing: str) -> Iterator[None]:
    """A watcher goes on after a failure, and the failure is in the log."""
    try:
        yield
    except Exception:
        log.exception("%s failed", doing)
