"""POST /v1/route: which model would answer, and why. Nothing is loaded or run.

To a client this shall cost little more than any answer of this server (tests/bench/bench_http.py).
"""

import asyncio

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from laya_desktop.core.errors import LayaError
from laya_desktop.core.types import AUTO_MODEL, TASKS, Caller, ChatRequest, Decision, Message, Role
from laya_desktop.engine.handle import EngineHandle
from laya_desktop.server.body import parse_body, read_body
from laya_desktop.server.errors import ApiError
from laya_desktop.server.models import resolve
from laya_desktop.server.openai_api import WireMessage, decode, read_messages
from laya_desktop.server.responses import error_response


class _Features(msgspec.Struct):
    """What the client knows about its prompt. `task_type` stands instead of the task that we would see."""

    task_type: str | None = None


class _Body(msgspec.Struct):
    """Either `messages`, as in a chat completion, or a `prompt`. Unknown fields are ignored: the body of a
    chat completion can be sent as it is."""

    messages: list[WireMessage] | None = None
    prompt: str | None = None
    model: str | None = None
    features: _Features | None = None


class Shortcut:
    """ASGI middleware: POST to one path is answered without the router and the layers around it, which cost
    a third of what a decision does."""

    def __init__(self, app: ASGIApp, path: str, endpoint: ASGIApp) -> None:
        self._app = app
        self._path = path
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self._path or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            await self._endpoint(scope, receive, send)
        except ApiError as error:
            await error_response(scope, error)(scope, receive, send)


_decoder = msgspec.json.Decoder(_Body)


class RouteDecision:
    """The endpoint, as an ASGI application. An ApiError that leaves it is the answer."""

    def __init__(self, handle: EngineHandle) -> None:
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(scope, receive)
        if body is None:
            return
        fields = await parse_body(body, _parse)
        answer = msgspec.json.encode(await self._decide(self._request(fields)))
        head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": answer})

    def _request(self, fields: _Body) -> ChatRequest:
        task = fields.features.task_type if fields.features else None
        if task is not None and task not in TASKS:
            raise ApiError(
                400,
                f"features.task_type: expected one of {', '.join(TASKS)}.",
                param="features.task_type",
            )
        return ChatRequest(
            id="",
            messages=_messages(fields),
            model=AUTO_MODEL if fields.model in (None, AUTO_MODEL) else resolve(self._handle, fields.model),
            caller=Caller.API,
            task=task,
        )

    async def _decide(self, request: ChatRequest) -> Decision:
        try:
            decided = self._handle.route(request)
            return decided.result() if decided.done() else await asyncio.wrap_future(decided)
        except LayaError as error:
            raise ApiError.of(error.info) from None


def _parse(body: bytes) -> _Body:
    return decode(body, _decoder)


def _messages(fields: _Body) -> tuple[Message, ...]:
    if fields.messages and fields.prompt is not None:
        raise ApiError(400, "Send messages or a prompt, not both.", param="prompt")
    if fields.prompt is not None:
        return (Message(Role.USER, fields.prompt),)
    if not fields.messages:
        raise ApiError(400, "messages: this field is required, or a prompt.", param="messages")
    return read_messages(fields.messages)
