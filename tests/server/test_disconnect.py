"""A client that leaves frees its slot, in every phase; one that only stops sending does not."""

import asyncio
import contextlib
import json
import socket
import time
from contextlib import closing

import pytest

from laya_desktop.core.events import Delta, Loading, Prefill
from laya_desktop.server.protocol import Connection

from .scripted import WAIT_S, accepted, finished, hang_after, read_all, read_until, routed

PHASES = {
    "before it is routed": (),
    "while the model loads": (routed(), Loading(model="smol", progress=0.1)),
    "while the prompt is read": (routed(), accepted(), Prefill(done=1, total=9)),
    "while text comes": (routed(), accepted(), Delta(text="a")),
}


def body(stream):
    return json.dumps({"messages": [{"role": "user", "content": "hi"}], "stream": stream}).encode()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("events", PHASES.values(), ids=PHASES.keys())
def test_leaving_cancels(server, handle, events, stream):
    handle.script = hang_after(*events)
    with closing(server.connect()) as sock:
        sock.sendall(server.post(body(stream)))
        request = handle.submitted.get(timeout=WAIT_S)
        if stream and events and isinstance(events[-1], Delta):
            read_until(sock, b'"content":"a"')
    assert handle.cancelled.get(timeout=2) == request.id


def test_leaving_with_unread_data_cancels(server, handle):
    handle.script = hang_after(*PHASES["while text comes"])
    with closing(server.connect()) as sock:
        sock.sendall(server.post(body(True)))
        sock.recv(1)
    handle.cancelled.get(timeout=2)


def test_closing_after_a_half_close_cancels(server, handle):
    handle.script = hang_after(*PHASES["while the prompt is read"])
    with closing(server.connect()) as sock:
        sock.sendall(server.post(body(True)))
        sock.shutdown(socket.SHUT_WR)
        read_until(sock, b": ping")
        assert handle.running == 1
    handle.cancelled.get(timeout=4)


@pytest.mark.parametrize("stream", [False, True])
def test_a_half_close_still_gets_the_answer(server, handle, stream, monkeypatch):
    """The rest comes only after the server has seen the end of what the client sends."""
    seen = asyncio.Event()

    async def script(request):
        yield routed()
        yield accepted()
        yield Delta(text="a")
        await seen.wait()
        yield Delta(text="b")
        yield finished()

    handle.script = script
    original = Connection.eof_received

    def eof_received(self):
        seen.set()
        return original(self)

    monkeypatch.setattr(Connection, "eof_received", eof_received)
    with closing(server.connect()) as sock:
        sock.sendall(server.post(body(stream), close=False))
        handle.submitted.get(timeout=WAIT_S)
        sock.shutdown(socket.SHUT_WR)
        data = read_all(sock)
    assert (b"data: [DONE]" if stream else b'"content":"ab"') in data
    assert handle.cancelled.empty()


def test_a_reader_that_stalls_is_cut_off(server, handle, monkeypatch):
    monkeypatch.setattr(Connection, "stalled_reader_s", 0.05)

    async def script(request):
        yield routed()
        yield accepted()
        while True:
            yield Delta(text="x" * 65536)
            await asyncio.sleep(0)

    handle.script = script
    with closing(socket.socket()) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(WAIT_S)
        sock.connect(("127.0.0.1", server.port))
        sock.sendall(server.post(body(True)))
        handle.cancelled.get(timeout=WAIT_S)


@pytest.mark.slow
def test_two_hundred_leave_nothing_behind(server, handle, client):
    handle.script = hang_after(*PHASES["while text comes"])
    for number in range(200):
        with closing(server.connect()) as sock:
            sock.sendall(server.post(body(number % 2 == 0)))
            handle.submitted.get(timeout=WAIT_S)
        handle.cancelled.get(timeout=WAIT_S)
    handle.script = hang_after()
    assert client.get("/health").status_code == 200

    async def tasks():
        return len(asyncio.all_tasks())

    assert handle.run(tasks()).result(WAIT_S) <= 2


@pytest.fixture
def hurry(monkeypatch):
    monkeypatch.setattr(Connection, "head_timeout_s", 0.4)


HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"G", HEAD])
def test_a_head_has_to_come_in_time(hurry, server, sent):
    with closing(server.connect()) as sock:
        sock.sendall(sent)
        assert read_all(sock) == b""


@pytest.mark.parametrize("drip", [b"\r\n", b"x"])
def test_a_head_that_comes_in_drops_is_cut_off(hurry, server, drip):
    with closing(server.connect()) as sock:
        sock.sendall(HEAD + b"\r\n")
        read_until(sock, b"}")
        started = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < started + WAIT_S:
                sock.sendall(drip)
                sock.settimeout(0.05)
                with contextlib.suppress(TimeoutError):
                    if sock.recv(1) == b"":
                        break
        assert time.monotonic() < started + 2


def test_a_whole_head_has_all_the_time(hurry, server, handle):
    """For its body, for its answer, and before the next request."""
    handle.script = hang_after(*PHASES["while text comes"])
    with closing(server.connect()) as sock:
        request = server.post(body(True), close=False)
        sock.sendall(request[:-10])
        time.sleep(0.6)
        sock.sendall(request[-10:])
        read_until(sock, b'"content":"a"')
        time.sleep(0.6)
        assert handle.running == 1
    with closing(server.connect()) as sock:
        for _ in range(2):
            sock.sendall(HEAD + b"\r\n")
            assert b"200 OK" in read_until(sock, b"}")
            time.sleep(0.6)
