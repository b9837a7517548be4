"""The HTTP connection: uvicorn's, with what a server for slow answers needs besides.

- A client that shuts down its sending side still gets its answer. That looks the same as one that has gone,
  so such a connection is probed with bytes that clients skip: to one that has gone, the second write fails.
- A client that stops reading is cut off.
- A head that does not end is refused: the parser would gather it for ever. A connection on which no head is
  complete in time is closed, so that silent ones do not use up the descriptors.
- Malformed HTTP is answered in JSON like every other error.
- The head of an answer leaves with the first part of the body: each packet wakes the client and costs a call.
"""

import asyncio
from http import HTTPStatus
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from laya_desktop.server.errors import ApiError

_FIRST_PROBE_S = 0.02
_LONGEST_PROBE_S = 1.0
_MAX_HEAD_BYTES = 64 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(HttpToolsProtocol):
    """Handlers find it in ``scope["state"]["connection"]``.

    `probe` is what may be written between two chunks of the response under way; `hang_up` closes the
    connection after it.
    """

    stalled_reader_s = 60.0
    """A client that leaves 64 kB unread for so many seconds is cut off."""

    head_timeout_s = 20.0
    """A client that has not sent a whole head so many seconds after it could is cut off."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.probe = b""
        self.hang_up = False
        self._stalled: asyncio.TimerHandle | None = None
        self._head_due: asyncio.TimerHandle | None = None
        self._gathered = 0
        """Bytes of whole packets since the parser last handed something over: it holds no more than these and
        one packet."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        self._gathered += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._gathered > _MAX_HEAD_BYTES:
            self._refuse(ApiError(431, "The request's headers are too large."))
        elif self.cycle is None or self.cycle.response_complete:
            self._expect_head()

    def _expect_head(self) -> None:
        """From now on, unless it is expected already: what comes in slowly does not put it off."""
        if self._head_due is None:
            self._head_due = self.loop.call_later(self.head_timeout_s, self.transport.close)

    def _forget_head(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._gathered = 0
        self.scope["state"]["connection"] = self

    def on_headers_complete(self) -> None:
        self._forget_head()
        super().on_headers_complete()
        if self.cycle is not None and self.cycle.transport is self.transport:
            self.cycle.transport = _HeadWithBody(self.cycle, self.transport)  # type: ignore[assignment]
        self._gathered = 0

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._gathered = 0

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._gathered = 0

    def eof_received(self) -> bool:  # type: ignore[override]
        """Returns whether the connection stays open."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete or cycle.more_body or self.pipeline:
            return False
        if cycle.scope["http_version"] != "1.1":  # 1.0 knows nothing to probe with
            return False
        cycle.keep_alive = False
        self._probe(cycle, _FIRST_PROBE_S)
        return True

    def _probe(self, cycle: RequestResponseCycle, wait_s: float) -> None:
        if cycle.response_complete or self.transport.is_closing():
            return
        if not cycle.response_started:
            self.transport.write(_CONTINUE)
        elif self.probe and cycle.chunked_encoding:
            cycle.transport.write(b"%x\r\n%b\r\n" % (len(self.probe), self.probe))
        self.loop.call_later(wait_s, self._probe, cycle, min(2 * wait_s, _LONGEST_PROBE_S))

    def on_response_complete(self) -> None:
        self.probe = b""
        if self.hang_up:
            self.transport.close()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self.stalled_reader_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_stall()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_stall()
        self._forget_head()
        super().connection_lost(exc)

    def _forget_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def send_400_response(self, msg: str) -> None:
        self._refuse(ApiError(400, msg))

    def _refuse(self, error: ApiError) -> None:
        """Answer outside of any request, unless that would end up inside an answer, and close."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            status = f"{error.status} {HTTPStatus(error.status).phrase}".encode()
            body = msgspec.json.encode(error.payload())
            self.transport.write(
                b"HTTP/1.1 %b\r\ncontent-type: application/json\r\n"
                b"connection: close\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)
            )
        self.transport.close()


class _HeadWithBody:
    """What a cycle writes to. It writes the head of an answer first, and always a body after it, if only an
    empty one, except for HEAD."""

    def __init__(self, cycle: RequestResponseCycle, transport: asyncio.Transport) -> None:
        self._cycle = cycle
        self._transport = transport
        self._head: bytes | None = None

    def write(self, data: bytes) -> None:
        if self._head is None and self._cycle.response_started and self._cycle.scope["method"] != "HEAD":
            self._head = data
        elif self._head:
            self._transport.write(self._head + data)
            self._head = b""
        else:
            self._transport.write(data)

    def close(self) -> None:
        if self._head:
            self.write(b"")
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()
