"""What every endpoint that takes a body shares: reading it within bounds, parsing it, and seeing the client
leave."""

import asyncio
from collections.abc import Callable
from typing import TypeVar, cast

from starlette.types import Message, Receive, Scope

from laya_desktop.server.errors import ApiError

MAX_BODY_BYTES = 8 * 1024 * 1024
_PARSE_INLINE_BYTES = 64 * 1024
_BODY_IDLE_S = 30.0

Parsed = TypeVar("Parsed")


async def read_body(scope: Scope, receive: Receive) -> bytes | None:
    """The whole body; None if the client left before it was complete. Raises ApiError 413 or 408."""
    too_large = ApiError(
        413, f"The body is larger than {MAX_BODY_BYTES // 1024**2} MB.", code="request_too_large"
    )
    for name, value in scope["headers"]:
        if name == b"content-length" and int(value) > MAX_BODY_BYTES:
            raise too_large
    parts: list[bytes] = []
    size = 0
    while True:
        message = _at_hand(receive) or await _within_time(receive)
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            raise too_large
        if not message.get("more_body", False):
            return b"".join(parts)


def _at_hand(receive: Receive) -> Message | None:
    """The next part if it has arrived, as it nearly always has: a timer costs more than reading it."""
    waiting = receive().__await__()
    try:
        next(waiting)
    except StopIteration as arrived:
        return cast(Message, arrived.value)
    waiting.close()
    return None


async def _within_time(receive: Receive) -> Message:
    try:
        async with asyncio.timeout(_BODY_IDLE_S):
            return await receive()
    except TimeoutError:
        raise ApiError(408, "The rest of the body did not arrive.", headers={"connection": "close"}) from None


async def parse_body(body: bytes, parse: Callable[[bytes], Parsed]) -> Parsed:
    """`parse(body)`, in another thread if it is so large that the loop would stand still."""
    if len(body) <= _PARSE_INLINE_BYTES:
        return parse(body)
    return await asyncio.to_thread(parse, body)


async def disconnected(receive: Receive) -> None:
    """Returns once the client has gone. Only after `read_body`."""
    while (await receive())["type"] != "http.disconnect":
        pass
