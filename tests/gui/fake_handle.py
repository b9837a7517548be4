"""A stand-in for the engine: the window sees a thread that sends events, as the real one does."""

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any

from laya_desktop.config.schema import Config
from laya_desktop.core.errors import ErrorCode, ErrorInfo, LayaError
from laya_desktop.core.events import (
    Accepted,
    Cancelled,
    ConfigApplied,
    Delta,
    EngineEvent,
    Failed,
    Finished,
    FinishReason,
    MemorySample,
    ModelsChanged,
    ModelStatus,
    RequestEvent,
    Routed,
)
from laya_desktop.core.types import (
    Candidate,
    ChatRequest,
    Decision,
    LoadedInfo,
    ModelInfo,
    ModelState,
    Timings,
    Usage,
)

Script = Callable[[ChatRequest], Iterable[RequestEvent]]


def model(name: str, state: ModelState = ModelState.WARM, **fields: Any) -> ModelStatus:
    """A model as the engine would report it."""
    defaults: dict[str, Any] = {
        "backend": "gguf",
        "path": f"/models/{name}.gguf",
        "info": ModelInfo(
            architecture="llama",
            size_bytes=98_362_432,
            parameters=134_515_008,
            quantization="Q4_1",
            trained_context=8192,
            has_chat_template=True,
        ),
    }
    if state in (ModelState.WARM, ModelState.BUSY):
        defaults["loaded"] = LoadedInfo(context_tokens=4096, max_streams=4, backend_version="1")
        defaults["memory_bytes"] = 210 * 1024**2
    return ModelStatus(name=name, state=state, **(defaults | fields))


def decision(chosen: str = "small") -> Decision:
    return Decision(
        model=chosen,
        rule="Everything else",
        reason="the fastest model that can answer",
        task="chat",
        candidates=(Candidate(model=chosen),),
        elapsed_us=14.0,
    )


def answer(text: str, *, chosen: str = "small", prompt_tokens: int = 20) -> list[RequestEvent]:
    """The events of a whole answer, a word at a time."""
    words = [word + " " for word in text.split(" ")]
    return [
        Routed(decision=decision(chosen)),
        Accepted(prompt_tokens=prompt_tokens, reused_tokens=0, context_tokens=4096),
        *(Delta(text=word) for word in words),
        finished(len(words), prompt_tokens),
    ]


def finished(tokens: int, prompt_tokens: int = 20) -> Finished:
    return Finished(
        reason=FinishReason.STOP,
        usage=Usage(prompt_tokens=prompt_tokens, completion_tokens=tokens),
        timings=Timings(prefill_ms=80.0, decode_ms=max(1, tokens - 1) * 25.0),
    )


def failed(code: ErrorCode, message: str) -> Failed:
    return Failed(error=ErrorInfo(code=code, message=message))


class FakeHandle:
    """Speaks like `EngineHandle`. `script` makes a request's events; without one the test emits them."""

    def __init__(
        self, *models: ModelStatus, config: Config | None = None, script: Script | None = None
    ) -> None:
        self.config = config or Config()
        self.config_problems: tuple[str, ...] = ()
        self.models = models
        self.memory: MemorySample | None = None
        self.script = script
        self.requests: list[ChatRequest] = []
        self.cancelled: list[str] = []
        self.saved: list[tuple[str, object]] = []
        self.calls: list[tuple[str, str]] = []
        self.refusal: LayaError | None = None
        self._sinks: list[Callable[[EngineEvent], None]] = []
        self._open: dict[str, Callable[[RequestEvent], None]] = {}
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="fake-engine", daemon=True)
        self._thread.start()

    def start(self) -> None: ...

    def stop(self, timeout_s: float = 10.0) -> None:
        self._work.put(None)
        self._thread.join(timeout_s)

    def subscribe(self, sink: Callable[[EngineEvent], None]) -> Callable[[], None]:
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink)

    def submit(self, request: ChatRequest, sink: Callable[[RequestEvent], None]) -> None:
        self.requests.append(request)
        self._open[request.id] = sink
        if self.script is not None:
            self.emit(request.id, *self.script(request))

    def cancel(self, request_id: str) -> None:
        self.cancelled.append(request_id)
        self.emit(request_id, Cancelled())

    def load(self, name: str) -> "Future[None]":
        return self._answer("load", name)

    def unload(self, name: str) -> "Future[None]":
        return self._answer("unload", name)

    def set_config(self, key: str, value: object) -> "Future[None]":
        future: Future[None] = Future()
        self.saved.append((key, value))
        section, _, name = key.partition(".")

        def apply() -> None:
            if self.refusal is not None:
                future.set_exception(self.refusal)
                return
            part = getattr(self.config, section)
            if name:
                part = part.model_copy(update={name: value})
                self.config = self.config.model_copy(update={section: part})
            self.publish(ConfigApplied())
            future.set_result(None)

        self._work.put(apply)
        return future

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> "Future[Any]":
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(asyncio.run(coroutine))
            except Exception as problem:
                future.set_exception(problem)

        self._work.put(work)
        return future

    # For tests

    def emit(self, request_id: str, *events: RequestEvent) -> None:
        """Send a request's events from the fake engine's thread; nothing follows a terminal one."""

        def send() -> None:
            for event in events:
                sink = self._open.get(request_id)
                if sink is None:
                    return
                if isinstance(event, Finished | Failed | Cancelled):
                    del self._open[request_id]
                sink(event)

        self._work.put(send)

    def publish(self, *events: EngineEvent) -> None:
        """Send engine events from the fake engine's thread."""

        def send() -> None:
            for event in events:
                if isinstance(event, ModelsChanged):
                    self.models = event.models
                elif isinstance(event, MemorySample):
                    self.memory = event
                for sink in list(self._sinks):
                    sink(event)

        self._work.put(send)

    def _answer(self, verb: str, name: str) -> "Future[None]":
        self.calls.append((verb, name))
        future: Future[None] = Future()
        refusal = self.refusal
        self._work.put(
            (lambda: future.set_exception(refusal)) if refusal else (lambda: future.set_result(None))
        )
        return future

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
