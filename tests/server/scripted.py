"""A scripted stand-in for the engine's handle, on a loop thread of its own."""

import asyncio
import queue
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import closing
from typing import Any

from laya_desktop.config.schema import Config
from laya_desktop.core.events import (
    Accepted,
    Cancelled,
    Delta,
    Finished,
    FinishReason,
    ModelStatus,
    RequestEvent,
    Routed,
)
from laya_desktop.core.types import ChatRequest, Decision, ModelState, Timings, Usage
from laya_desktop.server.listener import Listener

WAIT_S = 10.0
"""Longer than anything takes; reached only by a failing test."""

Script = Callable[[ChatRequest], AsyncIterator[RequestEvent]]


def routed(model: str = "smol", rule: str = "small talk") -> Routed:
    return Routed(
        decision=Decision(
            model=model, rule=rule, reason="greeting", task="chat", candidates=(), elapsed_us=12.0
        )
    )


def accepted() -> Accepted:
    return Accepted(prompt_tokens=7, reused_tokens=3, context_tokens=256)


def finished(tokens: int = 2) -> Finished:
    return Finished(
        reason=FinishReason.STOP,
        usage=Usage(prompt_tokens=7, completion_tokens=tokens, reused_tokens=3),
        timings=Timings(prefill_ms=4.0, decode_ms=9.0),
    )


async def hello(request: ChatRequest) -> AsyncIterator[RequestEvent]:
    yield routed()
    yield accepted()
    yield Delta(text="Hello")
    yield Delta(text=" wörld 🙂")
    yield finished()


def replay(*events: RequestEvent) -> Script:
    async def script(request: ChatRequest) -> AsyncIterator[RequestEvent]:
        for event in events:
            yield event

    return script


def hang_after(*events: RequestEvent) -> Script:
    async def script(request: ChatRequest) -> AsyncIterator[RequestEvent]:
        for event in events:
            yield event
        await asyncio.Event().wait()

    return script


class FakeHandle:
    """Plays `script` for every request. Tests wait on the two queues."""

    def __init__(self) -> None:
        self.config = Config.model_validate({"models": [{"name": "smol", "path": "/models/smol.gguf"}]})
        self.models = (self._status("smol"), self._status("千问"))
        self.script: Script = hello
        self.decision: Decision | Exception = routed().decision
        self.decide_later = False
        self.asked: list[ChatRequest] = []
        self.submitted: queue.Queue[ChatRequest] = queue.Queue()
        self.cancelled: queue.Queue[str] = queue.Queue()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def configure(self, **server: object) -> None:
        """Change the live settings of the server."""
        self.config = self.config.model_copy(update={"server": self.config.server.model_validate(server)})

    def submit(self, request: ChatRequest, sink: Callable[[RequestEvent], None]) -> None:
        self._loop.call_soon_threadsafe(self._start, request, sink)

    def route(self, request: ChatRequest) -> "Future[Decision]":
        """Decides at once, as the engine does on its own thread; later if `decide_later` is set."""
        self.asked.append(request)
        decided: Future[Decision] = Future()
        if isinstance(self.decision, Exception):
            decided.set_exception(self.decision)
        elif self.decide_later:
            self._loop.call_later(0.01, decided.set_result, self.decision)
        else:
            decided.set_result(self.decision)
        return decided

    def cancel(self, request_id: str) -> None:
        self._loop.call_soon_threadsafe(self._cancel, request_id)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    @property
    def running(self) -> int:
        return len(self._running)

    def stop(self) -> None:
        self.run(self._drain()).result(WAIT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()

    def _start(self, request: ChatRequest, sink: Callable[[RequestEvent], None]) -> None:
        self._running[request.id] = self._loop.create_task(self._play(request, sink))
        self.submitted.put(request)

    async def _play(self, request: ChatRequest, sink: Callable[[RequestEvent], None]) -> None:
        try:
            async for event in self.script(request):
                sink(event)
        except asyncio.CancelledError:
            sink(Cancelled())
        finally:
            del self._running[request.id]

    def _cancel(self, request_id: str) -> None:
        if task := self._running.get(request_id):
            task.cancel()
            self.cancelled.put(request_id)

    async def _drain(self) -> None:
        """Everything on the loop ends, so that nothing is left for the next test."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_default_executor()

    @staticmethod
    def _status(name: str) -> ModelStatus:
        return ModelStatus(name=name, backend="gguf", path=f"/models/{name}.gguf", state=ModelState.WARM)


class Server:
    """A running server and ways to talk to it."""

    def __init__(self, handle: FakeHandle, listener: Listener) -> None:
        self.handle = handle
        self.port = listener.port
        self.url = listener.url
        self.connections = listener._state.connections

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S)

    def raw(self, data: bytes) -> bytes:
        """Send bytes, end the sending side, and read until the server closes."""
        with closing(self.connect()) as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            return read_all(sock)

    def post(self, body: bytes, *extra: str, close: bool = True) -> bytes:
        """The bytes of a chat completion request."""
        lines = [
            "POST /v1/chat/completions HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            *(["Connection: close"] if close else []),
            *extra,
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body


def read_all(sock: socket.socket) -> bytes:
    parts = []
    while data := sock.recv(65536):
        parts.append(data)
    return b"".join(parts)


def read_until(sock: socket.socket, mark: bytes) -> bytes:
    data = b""
    while mark not in data:
        more = sock.recv(65536)
        assert more, data
        data += more
    return data
