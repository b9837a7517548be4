"""A small client of the HTTP server: ``Client("http://localhost:8080").route("ping").model``.

It starts nothing, needs only the standard library and msgspec, and may be used from several threads.
"""

import http.client
import io
import re
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar, cast
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
    callers of several threads take turns. Each `chat` has a connection of its own: it may last for minutes,
    and repeating it would compute the answer twice.
    """

    def __init__(
        self,
        base_url: str = "http://localhost:8080",
        api_key: str | None = None,
        timeout_s: float = 600.0,
    ) -> None:
        """`timeout_s` bounds each wait; that for the first answer of a large model includes its loading."""
        self._url, self._address, self._path = _parse(base_url)
        self._timeout_s = timeout_s
        fields = {
            "Host": self._url.removeprefix("http://"),
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
        }
        if api_key is not None:
            if not (api_key.isascii() and api_key.isprintable()):
                raise LayaError(ErrorCode.INVALID_REQUEST, "The API key has characters that no key has.")
            fields["Authorization"] = f"Bearer {api_key}"
        self._head = "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode("ascii")
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

        `features` is what you know about it: with ``{"task_type": "chat"}`` the router takes it for chat.
        """
        body = {"prompt": prompt, "model": model, "features": features}
        return _decode(_ROUTE, self._repeatable("POST", "/v1/route", _encode(body)))

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
        """Ask, and wait for the whole answer. `prompt` is a question, or a chat: messages with ``role`` and
        ``content``."""
        body = {
            "model": model,
            "messages": [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt,
            "max_tokens": max_tokens,
            "temperature": temperature,
            "stop": list(stop),
        }
        connection = self._connect()
        try:
            data, head = self._ask(connection, "POST", "/v1/chat/completions", _encode(body))
        finally:
            connection.close()
        answer = _decode(_COMPLETION, data)
        choice = answer.choices[0]
        return Answer(
            text=choice.message.content,
            model=answer.model,
            rule=unquote(rule[1].decode("latin-1")) if (rule := _RULE.search(head)) else "",
            finish_reason=choice.finish_reason,
            prompt_tokens=answer.usage.prompt_tokens,
            completion_tokens=answer.usage.completion_tokens,
        )

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*self._address, timeout=self._timeout_s)

    def _repeatable(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Ask over the kept connection; once more if it turns out to be closed."""
        with self._lock:
            kept = self._connection.sock is not None
            try:
                return self._ask(self._connection, method, path, body)[0]
            except LayaError as error:
                if not (kept and isinstance(error.__cause__, _GONE)):
                    raise
            return self._ask(self._connection, method, path, body)[0]

    def _ask(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes
    ) -> tuple[bytes, bytes]:
        """Body and head of the answer."""
        start = f"{method} {self._path}{path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n"
        try:
            # In one piece: http.client's requests write head and body apart, which wakes the server twice.
            connection.send(b"%b%b\r\n%b" % (start.encode("ascii"), self._head, body))
            received, plain = _read_plain(connection.sock)
            if plain is not None:
                return plain, received
            replay = cast(socket.socket, _Replay(received, connection.sock))
            response = http.client.HTTPResponse(replay, method=method)
            response.begin()
            data = response.read()
            if response.will_close:
                connection.close()
        except TimeoutError as error:
            connection.close()
            raise LayaError(
                ErrorCode.INTERNAL, f"{self._url} did not answer within {self._timeout_s:g} s."
            ) from error
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise LayaError(
                ErrorCode.ENGINE_STOPPED,
                f"{self._url} does not answer: {str(error) or type(error).__name__}.",
                hint="Open Laya Desktop, or start the server with: laya-desktop serve",
            ) from error
        except BaseException:  # what is still to come would be taken for the next answer
            connection.close()
            raise
        if response.status != 200:
            raise _refusal(response, data)
        return data, response.headers.as_bytes()


# Reading answers. http.client reads every kind, but takes as long for a head as the server for a decision.

_RULE = re.compile(rb"^x-laya-rule:[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)[ \t]*(?:\r|\Z)", re.IGNORECASE)
_SPECIAL = re.compile(rb"\r\n(?:connection|transfer-encoding|content-encoding):", re.IGNORECASE)
_CHUNK_BYTES = 16 * 1024


def _read_plain(sock: socket.socket) -> tuple[bytes, bytes | None]:
    """Head and body of an answer as our server sends them: 200, with a length, and the connection stays.

    Of any other answer, what was read of it so far, and None.
    """
    received = sock.recv(_CHUNK_BYTES)
    head, end, body = received.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    if not (end and length and head.startswith(b"HTTP/1.1 200 ")) or _SPECIAL.search(head):
        return received, None
    missing = int(length[1]) - len(body)
    parts = [body]
    while missing > 0 and (part := sock.recv(min(missing, _CHUNK_BYTES))):
        parts.append(part)
        missing -= len(part)
    if missing:
        raise http.client.IncompleteRead(b"", missing)
    return head, b"".join(parts)


class _Replay(io.RawIOBase):
    """A socket to read from, beginning with what was already read from it."""

    def __init__(self, received: bytes, sock: socket.socket) -> None:
        self._received = received
        self._sock = sock

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._received:
            return self._sock.recv_into(buffer)
        part, self._received = self._received[: len(buffer)], self._received[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


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
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
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


def _parse(base_url: str) -> tuple[str, tuple[str, int], str]:
    """The server's URL, its host and port, and the path before ours."""
    try:
        parts = urlsplit(base_url)
        good = parts.scheme == "http" and bool(parts.hostname) and base_url.isascii()
        address = (parts.hostname or "", parts.port or 80)
    except ValueError:
        good = False
    if not good or parts.username is not None or not base_url.isprintable() or " " in base_url:
        raise LayaError(
            ErrorCode.INVALID_REQUEST,
            f"{base_url} is not the address of a server.",
            hint="Write it as http://localhost:8080.",
        )
    return f"http://{parts.netloc}", address, parts.path.rstrip("/").removesuffix("/v1")


def _encode(body: Mapping[str, object]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError) as error:  # ValueError: half a character
        raise LayaError(ErrorCode.INVALID_REQUEST, f"This cannot be sent: {error}.") from None


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
    """The error that the server reports. Codes of the server alone (keys, hosts, sizes) become
    INVALID_REQUEST, or INTERNAL where the server is at fault."""
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
