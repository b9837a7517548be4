"""What is read from a body, and what is refused (400 with the field at fault)."""

import json
import select
import socket
from contextlib import closing

import pytest

from laya_desktop.core.types import Message, Role, Sampling
from laya_desktop.server.body import MAX_BODY_BYTES
from laya_desktop.server.errors import ApiError
from laya_desktop.server.openai_api import parse_chat

from .scripted import WAIT_S, read_all, read_until

HI = [{"role": "user", "content": "hi"}]


def parse(body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return parse_chat(data, "id", lambda name: name)


def refused(body):
    with pytest.raises(ApiError) as caught:
        parse(body)
    assert caught.value.payload()["error"]["type"] == "invalid_request_error"
    assert "_Body" not in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{not json",
        b"[]",
        b'"x"',
        b'{"a":1}{',
        b"\xff",
        b"\x1f\x8b\x08\x00gzip",
        b"[" * 100_000,
        b'{"messages":[{"role":"user","content":"hi"}],"foo":' + b"[" * 100_000,
        b'{"messages":' + b'{"a":' * 100_000,
        b'{"messages":[{"role":"user","content":"\xff"}]}',
        b'{"messages":[{"role":"user","content":"hi"}],"foo":NaN}',
    ],
)
def test_broken_bodies(body):
    assert refused(body).status == 400


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [None]}, "messages[0]"),
        ({"messages": {"messages": HI}}, "messages"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [*HI, {"role": "assistant", "content": None}]}, "messages[1].content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "robot", "content": "hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": ["hi"]}]}, "messages[0].content[0]"),
        ({"messages": HI, "model": 5}, "model"),
        ({"messages": HI, "temperature": "0.7"}, "temperature"),
        ({"messages": HI, "temperature": -1}, "temperature"),
        ({"messages": HI, "temperature": True}, "temperature"),
        ({"messages": HI, "top_p": 0}, "top_p"),
        ({"messages": HI, "top_p": 2}, "top_p"),
        ({"messages": HI, "seed": -1}, "seed"),
        ({"messages": HI, "seed": 2**40}, "seed"),
        ({"messages": HI, "seed": 1.5}, "seed"),
        ({"messages": HI, "stream": "yes"}, "stream"),
        ({"messages": HI, "max_tokens": 0}, "max_tokens"),
        ({"messages": HI, "stop": ["x"] * 17}, "stop"),
        ({"messages": HI, "stop": [""]}, "stop[0]"),
        ({"messages": HI, "stream_options": {"include_usage": "yes"}}, "stream_options.include_usage"),
        ({"messages": HI, "n": 0}, "n"),
        ({"messages": HI, "logit_bias": {"abc": 1}}, "logit_bias"),
    ],
)
def test_bad_fields_are_named(fields, param):
    error = refused(fields)
    assert (error.status, error.param) == (400, param)
    assert "`" not in error.message


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5000])
def test_numbers_out_of_range(number):
    refused(b'{"messages":[{"role":"user","content":"hi"}],"temperature":' + number + b"}")


@pytest.mark.parametrize(
    "field",
    [
        {"n": 2},
        {"logprobs": True},
        {"top_logprobs": 3},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {}}},
        {"tools": [{"type": "function"}]},
        {"tool_choice": "required"},
        {"modalities": ["audio"]},
    ],
)
def test_what_is_not_supported_says_so(field):
    error = refused({"messages": HI, **field})
    assert (error.code, error.param) == ("unsupported_parameter", next(iter(field)))


def test_images_are_named():
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    assert refused({"messages": [*HI, {"role": "user", "content": parts}]}).param == "messages[1].content[1]"


def test_null_means_default_and_unknown_keys_are_ignored():
    names = [
        "model", "stream", "stream_options", "temperature", "top_k", "top_p", "min_p", "repeat_penalty",
        "presence_penalty", "frequency_penalty", "seed", "max_tokens", "max_completion_tokens", "stop", "n",
        "logprobs", "top_logprobs", "logit_bias", "response_format", "tools", "tool_choice", "foo",
    ]  # fmt: skip
    call = parse({"messages": HI, **dict.fromkeys(names), "bar": {"deep": [1]}})
    assert call.request.model == "auto"
    assert call.request.sampling == Sampling()
    assert (call.stream, call.include_usage) == (False, False)


def test_what_asks_for_nothing_is_fine():
    harmless = {"n": 1, "logprobs": False, "response_format": {"type": "text"}, "tools": [], "logit_bias": {}}
    parse({"messages": HI, **harmless, "tool_choice": "auto"})


def test_sampling():
    fields = {
        "temperature": 0, "top_k": 5, "top_p": 0.5, "min_p": 0.1, "repeat_penalty": 1.1,
        "presence_penalty": 1, "frequency_penalty": -1, "seed": 7, "max_tokens": 9, "stop": ["a", "b"],
    }  # fmt: skip
    sampling = parse({"messages": HI, **fields}).request.sampling
    assert sampling == Sampling(**{**fields, "stop": ("a", "b")})
    assert parse({"messages": HI, "stop": "a"}).request.sampling.stop == ("a",)
    both = {"max_tokens": 9, "max_completion_tokens": 5}
    assert parse({"messages": HI, **both}).request.sampling.max_tokens == 5


def test_messages():
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    call = parse(
        {
            "messages": [
                {"role": "developer", "content": "be brief"},
                {"role": "user", "content": parts, "name": "ann"},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
                {"role": "tool", "content": "42", "tool_call_id": "1"},
            ]
        }
    )
    assert call.request.messages == (
        Message(Role.SYSTEM, "be brief"),
        Message(Role.USER, "one two"),
        Message(Role.ASSISTANT, ""),
        Message(Role.TOOL, "42"),
    )


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (rb"\ud83d", "�"),
        (rb"a\ude42b", "a�b"),
        (rb"\ud83d\ud83d\ude42", "�🙂"),
        (rb"\ud83d\ude42", "🙂"),
        (rb"\\ud83d", r"\ud83d"),
        (rb"\\\ud83d", "\\�"),
        (rb"a\u0000b", "a\0b"),
    ],
)
def test_half_characters_become_a_replacement(escaped, text):
    body = b'{"messages":[{"role":"user","content":"' + escaped + b'"}]}'
    assert parse(body).request.messages[0].content == text


# Over sockets


def test_too_large_is_refused_before_it_is_read(client, server):
    answer = client.post(
        "/v1/chat/completions",
        content=b" " * (MAX_BODY_BYTES + 1),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "request_too_large"
    assert client.get("/health").status_code == 200


def test_too_large_in_chunks(client):
    def pieces():
        for _ in range(MAX_BODY_BYTES // 65536 + 1):
            yield b" " * 65536

    headers = {"content-type": "application/json"}
    answer = client.post("/v1/chat/completions", content=pieces(), headers=headers)
    assert answer.status_code == 413


def test_chunked_and_large_bodies_are_read(client, server):
    text = "wörd " * 50_000
    body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    headers = {"content-type": "application/json"}
    answer = client.post("/v1/chat/completions", content=iter([body[:9], body[9:]]), headers=headers)
    assert answer.status_code == 200
    assert server.handle.submitted.get(timeout=WAIT_S).messages[0].content == text


def test_large_broken_bodies_are_refused_too(client):
    headers = {"content-type": "application/json"}
    answer = client.post("/v1/chat/completions", content=b"[" * 1_000_000, headers=headers)
    assert answer.status_code == 400


def test_expect_continue(server):
    body = json.dumps({"messages": HI}).encode()
    request = server.post(body, "Expect: 100-continue")
    with closing(server.connect()) as sock:
        sock.sendall(request[: -len(body)])
        assert read_until(sock, b"\r\n\r\n").startswith(b"HTTP/1.1 100")
        sock.sendall(body)
        assert read_until(sock, b"}").startswith(b"HTTP/1.1 200")


def test_a_refused_expectation_closes_the_connection(server):
    with closing(server.connect()) as sock:
        request = server.post(b"", "Expect: 100-continue", close=False)
        sock.sendall(request.replace(b"Content-Length: 0", b"Content-Length: 99999999"))
        assert read_all(sock).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("path", ["/no/such/route", "/health"])
def test_every_refused_expectation_closes_the_connection(server, path):
    with closing(server.connect()) as sock:
        request = server.post(b"", "Expect: 100-continue", close=False)
        sock.sendall(request.replace(b"/v1/chat/completions", path.encode()))
        assert read_all(sock).startswith(b"HTTP/1.1 40")


def test_a_body_that_never_comes_is_forgotten(server):
    request = server.post(b"{}").replace(b"Content-Length: 2", b"Content-Length: 200")
    assert server.raw(request) == b""


def test_malformed_http_is_answered_in_json(server):
    answer = server.raw(b"GARBAGE\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"GET /", b"a"),
        (b"GET /health HTTP/1.1\r\nX-Long: ", b"a"),
        (b"GET /health HTTP/1.1\r\n", b"X-Short: a\r\n"),
        (b"TRAILERS", b"X-Short: a\r\n"),
    ],
)
def test_a_head_without_an_end_is_refused(server, start, piece):
    if start == b"TRAILERS":
        start = server.post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked") + b"0\r\n"
    with closing(server.connect()) as sock:
        sock.sendall(start)
        sent, answer = 0, b""
        while not answer and sent < 2_000_000:
            sock.sendall(piece * (10_000 // len(piece)))
            sent += 10_000
            if select.select([sock], [], [], 0.01)[0]:
                answer = sock.recv(65536)
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "invalid_request_error"


def test_many_small_chunks_are_no_head(server):
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 30_000}]}).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    head = server.post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    with closing(server.connect()) as sock:
        for at in range(0, len(chunks), 10_000):
            sock.sendall((head if at == 0 else b"") + chunks[at : at + 10_000])
        assert b"HTTP/1.1 200" in read_all(sock)


def test_keep_alive_survives_errors(server):
    good = json.dumps({"messages": HI}).encode()
    with closing(server.connect()) as sock:
        sock.sendall(server.post(b"{", close=False))
        assert b"HTTP/1.1 400" in read_until(sock, b"}}")
        sock.sendall(server.post(good))
        assert b"HTTP/1.1 200" in read_all(sock)


def test_over_ipv6(server):
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with closing(socket.create_connection(("::1", server.port), timeout=WAIT_S)) as sock:
        sock.sendall(
            f"GET /health HTTP/1.1\r\nHost: [::1]:{server.port}\r\nConnection: close\r\n\r\n".encode()
        )
        assert b"200 OK" in read_all(sock)
