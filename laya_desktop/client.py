"""A small client of the HTTP server: ``Client("http://localhost:8080").route("ping").model``.

It starts nothing, needs only the standard library and msgspec, and may be used from several threads.
"""

import http.client
import threading
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.types import AUTO_MODEL, Candidate

T = TypeVar("T")

_GONE = (BrokenPipeError, ConnectionResetError, ConnectionAbortedError, http.client.RemoteDisconnected)
"""How it shows that the server closed a connection while it was idle."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Which model would answer, by which rule and why. `elapsed_us` is the router's own time."""

    model: str
    rule: str
    reason: str
    task: str
    elapsed_us: float
    candidates: tuple[Candidate, ...] = ()


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer. `rule` says why this model gave it; ``str(answer)`` is its text."""

    text: str
    model: str
    rule: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int

    def __str__(self) -> str:
        return self.text


class Client:
    """Talks to one server. Every method raises LayaError: what the server reports, or ENGINE_STOPPED if no
    server answers.

    `route` and `models` share one connection, which is kept open and opened again if the server closed it;
    callers of several threads take turns. Each `chat` has a connection of its own: it may last for minutes, and
    repeating it would compute the answer twice.
    """

    def __init__(
        self,
        base_url: str = "http://localhost:8080",
        api_key: str | None = None,
        timeout_s: float = 600.0,
    ) -> None:
        """`timeout_s` bounds the wait for each answer; the first one of a large model includes its loading."""
        parts = urlsplit(base_url)
        if parts.scheme != "http" or not parts.hostname:
            raise LayaError(
                ErrorCode.INVALID_REQUEST,
                f"{base_url} is not the address of a server.",
                hint="Write it as http://localhost:8080.",
            )
        self._address = (parts.hostname, parts.port or 80)
        self._url = f"http://{parts.netloc.rpartition('@')[2]}"
        self._path = parts.path.rstrip("/").removesuffix("/v1")
        self._timeout_s = timeout_s
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._lock = threading.Lock()
        self._connection = self._connect()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the kept connection. The client stays usable: a later call opens it again."""
        with self._lock:
            self._connection.close()

    def route(
        self, prompt: str, *, model: str = AUTO_MODEL, features: Mapping[str, object] | None = None
    ) -> Route:
        """Which model would answer `prompt`. Nothing is loaded or run.

        `features` is what you know about it: ``{"task_type": "chat"}`` stands instead of what the router sees.
        """
        body = {"prompt": prompt, "model": model, "features": features}
        return _decode(_ROUTE, self._repeatable("POST", "/v1/route", msgspec.json.encode(body)))

    def models(self) -> tuple[str, ...]:
        """The names that `model` may have, ``auto`` among them."""
        listed = _decode(_MODELS, self._repeatable("GET", "/v1/models"))
        return tuple(model.id for model in listed.data)

    def chat(
        self,
        prompt: str | Sequence[Mapping[str, str]],
        *,
        model: str = AUTO_MODEL,
        max_tokens: int | None = None,
        temperature: float | None = None,
        stop: Sequence[str] = (),
    ) -> Answer:
        """Ask, and wait for the whole answer. `prompt` is a question, or messages with ``role`` and ``content``."""
        body = {
            "model": model,
            "messages": [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt,
            "max_tokens": max_tokens,
            "temperature": temperature,
            "stop": list(stop),
        }
        connection = self._connect()
        try:
            response, data = self._ask(connection, "POST", "/v1/chat/completions", msgspec.json.encode(body))
        finally:
            connection.close()
        answer = _decode(_COMPLETION, data)
        choice = answer.choices[0]
        return Answer(
            text=choice.message.content,
            model=answer.model,
            rule=unquote(response.headers.get("x-laya-rule", "")),
            finish_reason=choice.finish_reason,
            prompt_tokens=answer.usage.prompt_tokens,
            completion_tokens=answer.usage.completion_tokens,
        )

    def _connect(self) -> "_Connection":
        return _Connection(*self._address, timeout=self._timeout_s)

    def _repeatable(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Ask over the kept connection; once more if it turns out to be closed."""
        with self._lock:
            kept = self._connection.sock is not None
            try:
                return self._ask(self._connection, method, path, body)[1]
            except LayaError as error:
                if not (kept and isinstance(error.__cause__, _GONE)):
                    raise
            return self._ask(self._connection, method, path, body)[1]

    def _ask(
        self, connection: "_Connection", method: str, path: str, body: bytes | None
    ) -> tuple[http.client.HTTPResponse, bytes]:
        try:
            connection.request_at_once(method, self._path + path, body, self._headers)
            response = connection.getresponse()
            data = response.read()
        except TimeoutError as error:
            connection.close()
            raise LayaError(
                ErrorCode.INTERNAL, f"{self._url} did not answer within {self._timeout_s:g} s."
            ) from error
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise LayaError(
                ErrorCode.ENGINE_STOPPED,
                f"{self._url} does not answer: {error or type(error).__name__}.",
                hint="Open Laya Desktop, or start the server with: laya-desktop serve",
            ) from error
        except BaseException:  # what is still to come would be taken for the next answer
            connection.close()
            raise
        if response.status != 200:
            raise _refusal(response, data)
        return response, data


class _Connection(http.client.HTTPConnection):
    """Writes head and body together: two writes wake the server twice."""

    _held: list[bytes] | None = None

    def request_at_once(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> None:
        self._held = []
        try:
            self.request(method, path, body, headers)
            data = b"".join(self._held)
        finally:
            self._held = None
        super().send(data)

    def send(self, data: Any) -> None:
        if self._held is None:
            super().send(data)
        else:
            self._held.append(data)


# What the server sends


class _Listed(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Listed]


class _Message(msgspec.Struct):
    content: str


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str


class _Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int


class _Completion(msgspec.Struct):
    model: str
    choices: list[_Choice]
    usage: _Usage


class _Error(msgspec.Struct):
    message: str
    code: str | None = None
    param: str | None = None


class _Refusal(msgspec.Struct):
    error: _Error


_ROUTE = msgspec.json.Decoder(Route)
_MODELS = msgspec.json.Decoder(_Models)
_COMPLETION = msgspec.json.Decoder(_Completion)
_REFUSAL = msgspec.json.Decoder(_Refusal)
_CODES = {code.value: code for code in ErrorCode}


def _decode(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise LayaError(
            ErrorCode.INTERNAL,
            f"The answer is not that of a Laya Desktop server: {error}.",
            hint="Another program, or another version, may listen at this address.",
        ) from None


def _refusal(response: http.client.HTTPResponse, data: bytes) -> LayaError:
    """The error that the server reports. Codes of the server alone (keys, hosts, sizes) become INVALID_REQUEST,
    or INTERNAL where the server is at fault."""
    try:
        error = _REFUSAL.decode(data).error
    except msgspec.MsgspecError:
        error = _Error(message=f"The server answered {response.status} {response.reason}.")
    otherwise = ErrorCode.INTERNAL if response.status >= 500 else ErrorCode.INVALID_REQUEST
    retry_after = response.headers.get("retry-after", "")
    return LayaError(
        _CODES.get(error.code or "", otherwise),
        error.message,
        param=error.param,
        retry_after_s=float(retry_after) if retry_after.isdecimal() else None,
    )
