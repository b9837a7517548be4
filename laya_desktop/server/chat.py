"""POST /v1/chat/completions: one request through the engine, whole or streamed.

Everything here runs on the engine's loop; so do the events that the engine hands over.
"""

import asyncio
import time
import uuid
from collections import deque
from urllib.parse import quote

from starlette.types import Receive, Scope, Send

from laya_desktop.core.events import (
    TERMINAL,
    Accepted,
    Cancelled,
    Delta,
    Failed,
    Finished,
    RequestEvent,
    Routed,
)
from laya_desktop.core.types import Decision
from laya_desktop.engine.handle import EngineHandle
from laya_desktop.server import sse
from laya_desktop.server.body import disconnected, parse_body, read_body
from laya_desktop.server.errors import ApiError, stopped
from laya_desktop.server.models import resolve
from laya_desktop.server.openai_api import ChatCall, chunk, completion, measures, parse_chat
from laya_desktop.server.responses import encode_headers, json_response

_PING_S = 5.0

_HEADER_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) != "%") + " "


class ChatCompletions:
    """The endpoint, as an ASGI application. An ApiError that leaves it is the answer."""

    def __init__(self, handle: EngineHandle, *, ping_s: float = _PING_S) -> None:
        """A stream that has nothing to say sends a comment every `ping_s` seconds."""
        self._handle = handle
        self._ping_s = ping_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(scope, receive)
        if body is None:
            return
        call = await parse_body(body, self._parse)
        reply = _Reply(self._handle, call, self._ping_s, scope, receive, send)
        answering = asyncio.create_task(reply.run())
        leaving = asyncio.create_task(disconnected(receive))
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            answering.cancel()
            leaving.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)

    def _parse(self, body: bytes) -> ChatCall:
        return parse_chat(body, f"chatcmpl-{uuid.uuid4().hex}", lambda name: resolve(self._handle, name))


class _Inbox:
    """A request's events until the client takes them. Holds at most one answer, which the context bounds."""

    def __init__(self) -> None:
        self._events: deque[RequestEvent] = deque()
        self._arrived = asyncio.Event()
        self.ended = False

    def put(self, event: RequestEvent) -> None:
        self.ended = self.ended or isinstance(event, TERMINAL)
        self._events.append(event)
        self._arrived.set()

    async def get(self) -> RequestEvent:
        while not self._events:
            self._arrived.clear()
            await self._arrived.wait()
        return self._events.popleft()

    def following_text(self) -> str:
        """The text of the deltas that wait next in line: what a slow reader missed becomes one chunk."""
        texts = []
        while self._events and isinstance(event := self._events[0], Delta):
            texts.append(event.text)
            self._events.popleft()
        return "".join(texts)


class _Reply:
    """One answer on its way to one client. Ending `run` early cancels the request in the engine."""

    def __init__(
        self, handle: EngineHandle, call: ChatCall, ping_s: float, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._handle = handle
        self._call = call
        self._ping_s = ping_s
        self._scope = scope
        self._receive = receive
        self._send = send
        self._inbox = _Inbox()
        self._created = int(time.time())
        self._decision: Decision | None = None

    async def run(self) -> None:
        self._handle.submit(self._call.request, self._inbox.put)
        try:
            await (self._stream() if self._call.stream else self._whole())
        finally:
            if not self._inbox.ended:
                self._handle.cancel(self._call.request.id)

    async def _whole(self) -> None:
        texts: list[str] = []
        while True:
            match await self._next():
                case Delta(text=text):
                    texts.append(text)
                case Finished() as end:
                    body = completion(self._id, self._created, self._model, "".join(texts), end)
                    response = json_response(body, headers=self._headers())
                    return await response(self._scope, self._receive, self._send)
                case Failed() | Cancelled() as end:
                    raise self._refusal(end)

    async def _stream(self) -> None:
        # Until the prompt is accepted the answer may still be an error with a status of its own.
        while not isinstance(event := await self._next(), (Accepted, *TERMINAL)):
            pass
        if isinstance(event, Failed | Cancelled):
            raise self._refusal(event)
        await self._open()
        loop = asyncio.get_running_loop()
        ping_at = loop.time() + self._ping_s
        while True:
            try:
                async with asyncio.timeout_at(ping_at):
                    event = await self._next()
            except TimeoutError:
                await self._write(sse.PING)
                ping_at = loop.time() + self._ping_s
                continue
            match event:
                case Delta(text=text):
                    await self._write(self._chunk({"content": text + self._inbox.following_text()}))
                    ping_at = loop.time() + self._ping_s
                case Finished():
                    return await self._close(self._last_chunks(event))
                case Failed() | Cancelled():
                    return await self._break_off(event)

    async def _next(self) -> RequestEvent:
        event = await self._inbox.get()
        if isinstance(event, Routed):  # again when a fallback takes over
            self._decision = event.decision
        return event

    async def _open(self) -> None:
        if connection := self._scope.get("state", {}).get("connection"):
            connection.probe = sse.PING
        headers = encode_headers({**sse.HEADERS, **self._headers()})
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._write(self._chunk({"role": "assistant", "content": ""}))

    async def _write(self, data: bytes) -> None:
        """Waits while the client reads more slowly than the model writes."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _close(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data + sse.DONE})

    async def _break_off(self, end: Failed | Cancelled) -> None:
        if connection := self._scope.get("state", {}).get("connection"):
            connection.hang_up = True
        await self._close(sse.event(_error(end).payload()))

    def _refusal(self, end: Failed | Cancelled) -> ApiError:
        error = _error(end)
        error.headers = {**self._headers(), **error.headers}
        return error

    def _chunk(self, delta: dict[str, str], finish: str | None = None) -> bytes:
        payload = chunk(self._id, self._created, self._model, delta, finish)
        if self._call.include_usage:
            payload["usage"] = None
        return sse.event(payload)

    def _last_chunks(self, end: Finished) -> bytes:
        data = self._chunk({}, end.reason.value)
        if self._call.include_usage:
            empty = chunk(self._id, self._created, self._model, {})
            data += sse.event({**empty, "choices": [], **measures(end)})
        return data

    @property
    def _id(self) -> str:
        return self._call.request.id

    @property
    def _model(self) -> str:
        """The model that answers."""
        return self._decision.model if self._decision else self._call.request.model

    def _headers(self) -> dict[str, str]:
        headers = {"x-request-id": self._id}
        if self._decision:
            headers["x-laya-model"] = quote(self._decision.model, safe=_HEADER_SAFE)
            headers["x-laya-rule"] = quote(self._decision.rule, safe=_HEADER_SAFE)
        return headers


def _error(end: Failed | Cancelled) -> ApiError:
    return ApiError.of(end.error) if isinstance(end, Failed) else stopped()
