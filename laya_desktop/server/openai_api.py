"""OpenAI's wire format: bodies to requests, answers to bodies. Pure functions; may run in any thread."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from laya_desktop.core.events import Finished
from laya_desktop.core.types import AUTO_MODEL, Caller, ChatRequest, Message, Role, Sampling
from laya_desktop.server.errors import ApiError

MAX_STOP_STRINGS = 16

T = TypeVar("T")

_Penalty = Annotated[float, Meta(ge=-2, le=2)]
_Tokens = Annotated[int, Meta(ge=1, le=2**31 - 1)]
_Stop = Annotated[str, Meta(min_length=1)]


class _Part(msgspec.Struct):
    type: str
    text: str | None = None


class WireMessage(msgspec.Struct):
    role: str
    content: str | list[_Part] | None = None
    tool_calls: list[Any] | None = None


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _Body(msgspec.Struct):
    """The fields of POST /v1/chat/completions. null means absent; unknown fields are ignored."""

    messages: Annotated[list[WireMessage], Meta(min_length=1)]
    model: str | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_k: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    repeat_penalty: Annotated[float, Meta(gt=0, le=10)] | None = None
    presence_penalty: _Penalty | None = None
    frequency_penalty: _Penalty | None = None
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] | None = None
    max_tokens: _Tokens | None = None
    max_completion_tokens: _Tokens | None = None
    stop: str | Annotated[list[_Stop], Meta(max_length=MAX_STOP_STRINGS)] | None = None

    n: Annotated[int, Meta(ge=1)] | None = None
    logprobs: Any = None
    top_logprobs: Any = None
    logit_bias: Any = None
    response_format: Any = None
    modalities: Any = None
    tools: Any = None
    tool_choice: Any = None
    functions: Any = None
    function_call: Any = None


_SAME_NAME = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repeat_penalty",
    "presence_penalty",
    "frequency_penalty",
    "seed",
)

_UNSUPPORTED: dict[str, tuple[object, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
}
"""Fields that change an answer in ways we cannot, with the values that ask for nothing."""


class ChatCall(msgspec.Struct, frozen=True):
    """A parsed body: what the engine gets, and how the client wants its answer."""

    request: ChatRequest
    stream: bool
    include_usage: bool


_decoder = msgspec.json.Decoder(_Body)


def parse_chat(body: bytes, request_id: str, resolve: Callable[[str], str]) -> ChatCall:
    """Turn the body of a chat completion into a request.

    `resolve` maps the model name that the client gave to the one to ask for. An absent name is ``auto``.
    Raises ApiError, naming the field at fault.
    """
    fields = decode(body, _decoder)
    for name, harmless in _UNSUPPORTED.items():
        value = getattr(fields, name)
        if value is not None and value not in harmless:
            raise ApiError(400, f"{name} is not supported yet.", param=name, code="unsupported_parameter")
    request = ChatRequest(
        id=request_id,
        messages=read_messages(fields.messages),
        model=AUTO_MODEL if fields.model is None else resolve(fields.model),
        sampling=_sampling(fields),
        caller=Caller.API,
    )
    options = fields.stream_options
    return ChatCall(request, bool(fields.stream), bool(options and options.include_usage))


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|\\."
)
_WHERE = re.compile(r"^(?P<reason>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)
_MISSING = re.compile(r"missing required field `(\w+)`")


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """The fields of a body. Raises ApiError, naming the field at fault."""
    if _SURROGATE.search(body):
        # Half a character: clients that cut text by UTF-16 units send it. It becomes U+FFFD.
        body = _ESCAPE.sub(lambda match: b"\\ufffd" if match["lone"] else match[0], body)
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(400, f"The body is not valid JSON: {error}.") from None
    except RecursionError:
        raise ApiError(400, "The body is nested too deeply.") from None


def _invalid(text: str) -> ApiError:
    match = _WHERE.fullmatch(text)
    reason, path = (match["reason"], match["path"] or "") if match else (text, "")
    if missing := _MISSING.search(reason):
        path = f"{path}.{missing[1]}".lstrip(".")
        reason = "this field is required"
    message = f"{path or 'The body'}: {reason[:1].lower()}{reason[1:]}.".replace("`", "")
    return ApiError(400, message, param=path or None)


def read_messages(messages: Sequence[WireMessage]) -> tuple[Message, ...]:
    """The turns of a body. Raises ApiError, naming the field at fault."""
    return tuple(_message(message, index) for index, message in enumerate(messages))


def _message(message: WireMessage, index: int) -> Message:
    where = f"messages[{index}]"
    try:
        role = Role.SYSTEM if message.role == "developer" else Role(message.role)
    except ValueError:
        raise ApiError(
            400,
            f"{where}.role: expected system, developer, user, assistant or tool.",
            param=f"{where}.role",
        ) from None
    if isinstance(message.content, str):
        return Message(role, message.content)
    if message.content is None:
        if role is Role.ASSISTANT and message.tool_calls:
            return Message(role, "")
        raise ApiError(
            400,
            f"{where}.content: null is only allowed in an assistant message with tool_calls.",
            param=f"{where}.content",
        )
    parts = [_part(part, f"{where}.content[{place}]") for place, part in enumerate(message.content)]
    return Message(role, "".join(parts))


def _part(part: _Part, where: str) -> str:
    if part.type != "text":
        raise ApiError(
            400,
            f"{where}: only text parts are supported yet, not images, sound or files.",
            param=where,
            code="unsupported_content",
        )
    if part.text is None:
        raise ApiError(400, f"{where}.text: this field is required.", param=f"{where}.text")
    return part.text


def _sampling(fields: _Body) -> Sampling:
    given = {name: value for name in _SAME_NAME if (value := getattr(fields, name)) is not None}
    stop = fields.stop or ()
    return Sampling(
        **given,
        max_tokens=fields.max_completion_tokens or fields.max_tokens,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
    )


# Answers


def model_object(name: str, created: int) -> dict[str, object]:
    return {"id": name, "object": "model", "created": created, "owned_by": "laya"}


def completion(request_id: str, created: int, model: str, text: str, end: Finished) -> dict[str, object]:
    """The body of a whole answer."""
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": end.reason.value}
    return {
        "id": request_id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [choice],
        **measures(end),
    }


def chunk(
    request_id: str, created: int, model: str, delta: dict[str, str], finish: str | None = None
) -> dict[str, object]:
    """One event of a streamed answer."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {
        "id": request_id,
        "object": "chat.completion.chunk",
        "created": created,
        "model": model,
        "choices": [choice],
    }


def measures(end: Finished) -> dict[str, object]:
    """What a finished answer cost: OpenAI's usage, and our timings in milliseconds."""
    usage = end.usage
    return {
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.reused_tokens},
        },
        "timings": {"prefill_ms": end.timings.prefill_ms, "decode_ms": end.timings.decode_ms},
    }
