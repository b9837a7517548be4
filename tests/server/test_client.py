"""Our own client, against the server and against servers that behave badly."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest

from laya_desktop.client import Answer, Client, Route
from laya_desktop.core.errors import ErrorCode, ErrorInfo, LayaError
from laya_desktop.core.events import Failed
from laya_desktop.core.types import Candidate, Decision, Message, Role

from .scripted import WAIT_S, replay

ROUTE = b'{"model":"m","rule":"r","reason":"because","task":"chat","elapsed_us":1.5}'
Serve = Callable[[socket.socket], None]


def plain(body: bytes, status: bytes = b"200 OK", *fields: bytes) -> bytes:
    lines = [b"HTTP/1.1 " + status, b"content-length: %d" % len(body), *fields]
    return b"\r\n".join([*lines, b"", body])


def chunked(body: bytes) -> bytes:
    parts = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n"


def read_request(sock: socket.socket) -> bytes:
    """Head and body of one request; empty if the client has closed."""
    data = b""
    while not data.endswith(b"}"):
        part = sock.recv(65536)
        if not part:
            return b""
        data += part
    return data


@contextmanager
def scripted(*connections: Serve) -> Iterator[tuple[str, list[int]]]:
    """A server that treats its n-th connection as the n-th function says; the list counts connections."""
    seen: list[int] = []
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(WAIT_S)

    def serve() -> None:
        for serve_one in connections:
            try:
                sock, _ = listening.accept()
            except OSError:  # the test has ended
                return
            seen.append(1)
            with closing(sock):
                sock.settimeout(WAIT_S)
                serve_one(sock)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", seen
    finally:
        if sys.platform != "win32":
            listening.shutdown(socket.SHUT_RDWR)  # wakes the thread
        listening.close()
        thread.join(WAIT_S)


def answering(*answers: bytes) -> Serve:
    """Answers one request after the other, then closes."""

    def serve(sock: socket.socket) -> None:
        for answer in answers:
            if read_request(sock):
                sock.sendall(answer)

    return serve


def failure(call: Callable[[], object]) -> ErrorInfo:
    with pytest.raises(LayaError) as caught:
        call()
    return caught.value.info


@pytest.fixture
def laya(server) -> Iterator[Client]:
    with Client(server.url, timeout_s=WAIT_S) as client:
        yield client


# Against our server


def test_route(laya, handle):
    handle.decision = Decision(
        model="千问",
        rule="small talk",
        reason="greeting",
        task="chat",
        candidates=(Candidate(model="smol", excluded="It is cold."), Candidate(model="千问")),
        elapsed_us=12.5,
    )
    assert laya.route("你好 🙂", features={"task_type": "chat"}) == Route(
        model="千问",
        rule="small talk",
        reason="greeting",
        task="chat",
        candidates=(Candidate(model="smol", excluded="It is cold."), Candidate(model="千问")),
        elapsed_us=12.5,
    )
    (request,) = handle.asked
    assert request.messages == (Message(Role.USER, "你好 🙂"),)
    assert (request.model, request.task) == ("auto", "chat")


def test_models(laya):
    assert laya.models() == ("smol", "千问", "auto")


def test_chat(laya, handle):
    assert laya.chat("hi", model="smol", max_tokens=5, temperature=0, stop=["\n"]) == Answer(
        text="Hello wörld 🙂",
        model="smol",
        rule="small talk",
        finish_reason="stop",
        prompt_tokens=7,
        completion_tokens=2,
    )
    request = handle.submitted.get(timeout=WAIT_S)
    assert (request.model, request.sampling.max_tokens, request.sampling.stop) == ("smol", 5, ("\n",))
    assert request.sampling.temperature == 0
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    assert str(laya.chat(messages)) == "Hello wörld 🙂"
    request = handle.submitted.get(timeout=WAIT_S)
    assert request.messages == (Message(Role.SYSTEM, "Be brief."), Message(Role.USER, "hi"))


def test_many_calls_share_one_connection(laya, server):
    for _ in range(3):
        laya.route("ping")
        laya.models()
    assert len(server.connections) == 1
    failure(lambda: laya.route("ping", model="none"))
    laya.route("ping")
    assert len(server.connections) == 1


def test_threads_take_turns(laya, server):
    with ThreadPoolExecutor(8) as pool:
        assert {route.model for route in pool.map(laya.route, ["ping"] * 200)} == {"smol"}
    assert len(server.connections) == 1


def test_a_route_does_not_wait_for_a_chat(laya, handle):
    started, go_on = threading.Event(), threading.Event()
    script = handle.script

    async def waiting(request):
        started.set()
        await asyncio.to_thread(go_on.wait, WAIT_S)
        async for event in script(request):
            yield event

    handle.script = waiting
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(laya.chat, "hi")
        assert started.wait(WAIT_S)
        assert laya.route("ping").model == "smol"
        go_on.set()
        assert answer.result(WAIT_S).text == "Hello wörld 🙂"


def test_errors_are_the_servers(laya, handle):
    error = failure(lambda: laya.route("ping", model="none"))
    assert (error.code, error.param) == (ErrorCode.MODEL_NOT_FOUND, "model")
    error = failure(lambda: laya.route("ping", features={"task_type": "cooking"}))
    assert (error.code, error.param) == (ErrorCode.INVALID_REQUEST, "features.task_type")
    full = ErrorInfo(code=ErrorCode.QUEUE_FULL, message="The queue is full.", retry_after_s=3.0)
    handle.script = replay(Failed(error=full))
    assert failure(lambda: laya.chat("hi")) == full


def test_what_cannot_be_sent(laya, handle):
    for call in (
        lambda: laya.route("half a character: \ud83d"),
        lambda: laya.route("a", features={"task_type": object()}),
        lambda: laya.chat([{"role": "user", "content": "\ud83d"}]),
    ):
        assert failure(call).code is ErrorCode.INVALID_REQUEST
    assert not handle.asked


def test_keys(server, handle):
    handle.configure(api_keys=["secret"])
    with Client(server.url) as client:
        error = failure(client.models)
        assert error.code is ErrorCode.INVALID_REQUEST
        assert "API key" in error.message
    with Client(server.url, api_key="secret") as client:
        assert client.models()
        assert client.route("ping")
        assert client.chat("hi")
    error = failure(lambda: Client(server.url, api_key="a\r\nx: y"))
    assert error.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("form", ["{}", "{}/", "{}/v1", "{}/v1/"])
def test_forms_of_the_address(server, form):
    with Client(form.format(server.url)) as client:
        assert client.route("ping").model == "smol"


def test_a_name_as_address(server):
    with Client(f"http://localhost:{server.port}") as client:
        assert client.route("ping").model == "smol"


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8080",
        "https://localhost",
        "http://",
        "http://a:b",
        "http://u@a",
        "http://a b",
        "http://a\n",
    ],
)
def test_what_is_no_address(url):
    assert failure(lambda: Client(url)).code is ErrorCode.INVALID_REQUEST


# Against others


def test_no_server():
    with closing(socket.create_server(("127.0.0.1", 0))) as unused:
        port = unused.getsockname()[1]
    error = failure(lambda: Client(f"http://127.0.0.1:{port}").route("ping"))
    assert error.code is ErrorCode.ENGINE_STOPPED
    assert "laya-desktop serve" in error.hint


def test_a_connection_that_was_closed_is_opened_again():
    with scripted(answering(plain(ROUTE)), answering(plain(ROUTE))) as (url, seen), Client(url) as client:
        assert client.route("a").model == "m"
        assert client.route("b").model == "m"
        assert len(seen) == 2


def test_but_only_once():
    leaves = answering()
    with scripted(answering(plain(ROUTE)), leaves, leaves) as (url, seen), Client(url) as client:
        client.route("a")
        assert failure(lambda: client.route("b")).code is ErrorCode.ENGINE_STOPPED
        assert len(seen) == 2


def test_a_chat_is_never_repeated():
    with (
        scripted(lambda sock: read_request(sock) and None, answering()) as (url, seen),
        Client(url) as client,
    ):
        assert failure(lambda: client.chat("a")).code is ErrorCode.ENGINE_STOPPED
        assert len(seen) == 1


def test_a_server_that_says_nothing():
    go_on = threading.Event()

    def silent(sock: socket.socket) -> None:
        read_request(sock)
        go_on.wait(WAIT_S)

    with scripted(silent, answering(plain(ROUTE))) as (url, seen), Client(url, timeout_s=0.1) as client:
        error = failure(lambda: client.route("a"))
        assert (error.code, error.message) == (
            ErrorCode.INTERNAL,
            f"{url} did not answer within 0.1 s.",
        )
        go_on.set()
        client._timeout_s = client._connection.timeout = WAIT_S
        assert client.route("b").model == "m"
        assert len(seen) == 2


@pytest.mark.parametrize(
    "answer",
    [
        plain(ROUTE),
        plain(ROUTE, b"200 Fine", b"Connection: keep-alive", b"X: y"),
        plain(ROUTE, b"200 OK", b"connection: close"),
        b"HTTP/1.1 100 Continue\r\n\r\n" + plain(ROUTE),
        chunked(ROUTE),
        plain(ROUTE).replace(b"HTTP/1.1", b"HTTP/1.0"),
        b"HTTP/1.0 200 OK\r\n\r\n" + ROUTE,
    ],
)
@pytest.mark.parametrize("packets", [1, 7, 1000])
def test_answers_of_every_kind(answer, packets):
    def serve(sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        read_request(sock)
        step = max(1, len(answer) // packets)
        for start in range(0, len(answer), step):
            sock.sendall(answer[start : start + step])

    with scripted(serve, answering(plain(ROUTE))) as (url, seen), Client(url) as client:
        assert client.route("a") == Route(model="m", rule="r", reason="because", task="chat", elapsed_us=1.5)
        assert client.route("b").model == "m"
        assert len(seen) == 2


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", ErrorCode.ENGINE_STOPPED),
        (b"\r\n\r\n\r\n\r\n", ErrorCode.ENGINE_STOPPED),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{}", ErrorCode.ENGINE_STOPPED),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{}{}", ErrorCode.ENGINE_STOPPED),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2", ErrorCode.ENGINE_STOPPED),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 500 + b"\r\n", ErrorCode.ENGINE_STOPPED),
        (plain(b"<html>"), ErrorCode.INTERNAL),
        (plain(b"{}"), ErrorCode.INTERNAL),
        (plain(b"\xff"), ErrorCode.INTERNAL),
        (plain(b"<html>", b"404 Not Found"), ErrorCode.INVALID_REQUEST),
        (plain(b'{"error":"x"}', b"502 Bad Gateway"), ErrorCode.INTERNAL),
    ],
)
def test_what_is_not_our_server(answer, code):
    with scripted(answering(answer)) as (url, _), Client(url, timeout_s=WAIT_S) as client:
        assert failure(lambda: client.route("a")).code is code


def test_it_imports_little():
    code = "import sys, laya_desktop.client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"starlette", "uvicorn", "pydantic", "numpy", "asyncio", "PySide6", "laya_desktop.engine"}
    assert not heavy & set(done.stdout.split())


def test_requests_are_one_packet():
    got: list[bytes] = []

    def serve(sock: socket.socket) -> None:
        got.append(sock.recv(65536))
        sock.sendall(plain(ROUTE))

    with scripted(serve) as (url, _), Client(url) as client:
        client.route("ping")
    assert got[0].startswith(b"POST /v1/route HTTP/1.1\r\n")
    assert got[0].endswith(b'{"prompt":"ping","model":"auto","features":null}')
