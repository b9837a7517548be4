"""Answers, streams, errors and models, as clients see them."""

import asyncio
import json
from contextlib import closing

import openai
import pytest

from laya_desktop.core.errors import ErrorCode, ErrorInfo
from laya_desktop.core.events import Cancelled, Delta, Failed, Loading, Queued
from laya_desktop.server.chat import ChatCompletions

from .scripted import WAIT_S, accepted, finished, hello, read_all, replay, routed

BODY = {"model": "smol", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def api(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as api:
        yield api


def failure(code, **fields):
    return Failed(error=ErrorInfo(code=code, message="It failed.", hint="Try later.", **fields))


def events(data):
    """The payloads of an event stream, which has nothing but data lines, comments and blank lines."""
    lines = data.decode().split("\n")
    assert all(line == "" or line.startswith(("data: ", ": ")) for line in lines), data
    return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]


def test_a_whole_answer(client):
    answer = client.post("/v1/chat/completions", json=BODY)
    assert answer.headers["content-type"] == "application/json"
    assert (answer.headers["x-laya-model"], answer.headers["x-laya-rule"]) == ("smol", "small talk")
    data = answer.json()
    assert data["id"].startswith("chatcmpl-")
    assert data["model"] == "smol"
    assert data["choices"][0]["message"]["content"] == "Hello wörld 🙂"
    assert data["choices"][0]["finish_reason"] == "stop"
    assert data["usage"]["total_tokens"] == 9
    assert data["usage"]["prompt_tokens_details"] == {"cached_tokens": 3}
    assert data["timings"] == {"prefill_ms": 4.0, "decode_ms": 9.0}


def test_a_streamed_answer(client):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    answer = client.post("/v1/chat/completions", json={**BODY, **options})
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-laya-model"] == "smol"
    *payloads, done = events(answer.content)
    assert done == "[DONE]"
    first, *middle, last, usage = map(json.loads, payloads)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(chunk["choices"][0]["delta"]["content"] for chunk in middle) == "Hello wörld 🙂"
    assert (last["choices"][0]["delta"], last["choices"][0]["finish_reason"]) == ({}, "stop")
    assert {chunk["usage"] for chunk in (first, *middle, last)} == {None}
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 2
    assert len({chunk["id"] for chunk in (first, *middle, last, usage)}) == 1


def test_without_usage_there_is_none(client):
    answer = client.post("/v1/chat/completions", json={**BODY, "stream": True})
    assert b"usage" not in answer.content


def test_an_answer_without_text(client, handle):
    handle.script = replay(routed(), accepted(), finished(0))
    assert client.post("/v1/chat/completions", json=BODY).json()["choices"][0]["message"]["content"] == ""
    assert len(events(client.post("/v1/chat/completions", json={**BODY, "stream": True}).content)) == 3


def test_the_openai_client(api):
    whole = api.chat.completions.create(**BODY)
    assert whole.choices[0].message.content == "Hello wörld 🙂"
    chunks = list(api.chat.completions.create(**BODY, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hello wörld 🙂"
    assert [model.id for model in api.models.list()] == ["smol", "千问", "auto"]
    assert api.models.retrieve("smol").owned_by == "laya"


def test_the_model_that_answered_is_reported(client, handle):
    handle.script = replay(routed("千问", "代码 100%"), Queued(position=1), accepted(), finished())
    answer = client.post("/v1/chat/completions", json={**BODY, "model": None})
    assert answer.json()["model"] == "千问"
    assert answer.headers["x-laya-model"] == "%E5%8D%83%E9%97%AE"
    assert answer.headers["x-laya-rule"] == "%E4%BB%A3%E7%A0%81 100%25"
    assert handle.submitted.get(timeout=WAIT_S).model == "auto"


def test_a_fallback_after_the_head_is_named_in_the_chunks(client, handle):
    handle.script = replay(routed(), accepted(), routed("千问"), accepted(), Delta(text="a"), finished())
    answer = client.post("/v1/chat/completions", json={**BODY, "stream": True})
    assert json.loads(events(answer.content)[1])["model"] == "千问"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("code", "status", "retry"),
    [
        (ErrorCode.INVALID_REQUEST, 400, None),
        (ErrorCode.CONTEXT_LENGTH_EXCEEDED, 400, None),
        (ErrorCode.CHAT_TEMPLATE_ERROR, 400, None),
        (ErrorCode.MODEL_NOT_FOUND, 404, None),
        (ErrorCode.QUEUE_FULL, 503, "1"),
        (ErrorCode.QUEUE_TIMEOUT, 503, "1"),
        (ErrorCode.INSUFFICIENT_MEMORY, 503, "1"),
        (ErrorCode.MODEL_LOAD_FAILED, 500, None),
        (ErrorCode.WORKER_CRASHED, 500, None),
        (ErrorCode.ENGINE_STOPPED, 503, None),
    ],
)
def test_errors_before_the_first_token_have_a_status(client, handle, code, status, retry, stream):
    handle.script = replay(routed(), Loading(model="smol", progress=0.5), failure(code, param="messages"))
    answer = client.post("/v1/chat/completions", json={**BODY, "stream": stream})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers.get("retry-after") == retry
    assert answer.json()["error"] == {
        "message": "It failed. Try later.",
        "type": "server_error" if status >= 500 else "invalid_request_error",
        "param": "messages",
        "code": code.value,
    }


def test_retry_after_is_whole_seconds(client, handle):
    handle.script = replay(failure(ErrorCode.QUEUE_FULL, retry_after_s=2.1))
    assert client.post("/v1/chat/completions", json=BODY).headers["retry-after"] == "3"


def test_typed_errors_of_the_openai_client(api, handle):
    with pytest.raises(openai.NotFoundError) as missing:
        api.chat.completions.create(**{**BODY, "model": "gpt-4o"})
    assert missing.value.code == "model_not_found"
    handle.script = replay(failure(ErrorCode.CONTEXT_LENGTH_EXCEEDED))
    with pytest.raises(openai.BadRequestError) as long:
        api.chat.completions.create(**BODY, stream=True)
    assert long.value.code == "context_length_exceeded"


@pytest.mark.parametrize("end", [failure(ErrorCode.WORKER_CRASHED), Cancelled()])
def test_an_error_in_the_middle_of_a_stream(server, api, handle, end):
    handle.script = replay(routed(), accepted(), Delta(text="a"), end)
    with closing(server.connect()) as sock:
        sock.sendall(server.post(json.dumps({**BODY, "stream": True}).encode(), close=False))
        data = read_all(sock)  # ends, although the connection could have been kept
    code = "cancelled" if isinstance(end, Cancelled) else "worker_crashed"
    assert data.count(b'"error"') == 1
    assert f'"code":"{code}"'.encode() in data
    assert b"data: [DONE]\n\n" in data
    with pytest.raises(openai.APIError):
        list(api.chat.completions.create(**BODY, stream=True))


def test_a_request_stopped_in_the_app(client, handle):
    handle.script = replay(routed(), accepted(), Delta(text="a"), Cancelled())
    assert client.post("/v1/chat/completions", json=BODY).status_code == 499


@pytest.mark.parametrize(
    "name",
    [
        "no-such-model-xyz",
        "gpt-4o",
        "",
        "SMOL",
        "smol.gguf",
        "/etc/passwd",
        "../../x.gguf",
        "/models/smol.gguf",
        "HuggingFaceTB/SmolLM2-135M",
        "a" * 10_000,
        "ü\0",
    ],
)
def test_unknown_models(client, handle, name):
    answer = client.post("/v1/chat/completions", json={**BODY, "model": name})
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert (error["type"], error["param"], error["code"]) == (
        "invalid_request_error",
        "model",
        "model_not_found",
    )
    assert "smol, 千问, auto" in error["message"]
    assert len(error["message"]) < 300
    assert handle.submitted.empty()


def test_hints_for_unknown_models(client):
    def message(name):
        return client.post("/v1/chat/completions", json={**BODY, "model": name}).json()["error"]["message"]

    assert "by its name, which is 'smol'" in message("/models/smol.gguf")
    assert "not by its path" in message("../../x.gguf")
    assert "Did you mean 'smol'?" in message("SMOL")


def test_aliases(client, handle):
    models = [{"name": "smol", "path": "/models/smol.gguf", "aliases": ["gpt-4o"]}]
    handle.config = handle.config.model_validate({"models": models})
    assert client.post("/v1/chat/completions", json={**BODY, "model": "gpt-4o"}).status_code == 200
    assert handle.submitted.get(timeout=WAIT_S).model == "smol"


def test_models(client):
    assert client.get("/v1/models/smol").json()["id"] == "smol"
    assert client.get("/v1/models/auto").json()["object"] == "model"
    for path in ("nope", "", "../smol", "a/b"):
        answer = client.get(f"/v1/models/{path}")
        assert answer.status_code == 404
        assert "error" in answer.json()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/", 404),
        ("GET", "/health/", 404),
        ("GET", "/docs", 404),
        ("PUT", "/v1/models", 405),
        ("GET", "/v1/chat/completions", 405),
        ("DELETE", "/health", 405),
    ],
)
def test_unknown_routes_and_verbs_are_answered_in_json(client, method, path, status):
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert (status == 405) == ("allow" in answer.headers)


def test_health(client):
    assert client.get("/health").json()["status"] == "ok"
    assert client.head("/health").content == b""


def test_a_defect_is_a_sentence_and_a_traceback_in_the_log(client, handle, caplog):
    handle.models = None
    answer = client.get("/v1/models")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal"
    assert "Traceback" not in answer.text
    client.get("/health")  # the loop has gone round: the log is written
    assert "TypeError" in caplog.text


def test_silence_is_filled_with_comments(handle):
    """At the ASGI level, where the interval can be chosen."""
    pinged = asyncio.Event()
    sent = []
    asked = iter([{"type": "http.request", "body": json.dumps({**BODY, "stream": True}).encode()}])

    async def script(request):
        yield routed()
        yield accepted()
        await pinged.wait()
        async for event in hello(request):
            yield event

    async def send(message):
        sent.append(message.get("body", b""))
        if sent[-1].startswith(b": "):
            pinged.set()

    async def receive():
        return next(asked, None) or await asyncio.Event().wait()

    handle.script = script
    app = ChatCompletions(handle, ping_s=0.001)
    handle.run(app({"type": "http", "headers": []}, receive, send)).result(WAIT_S)
    assert b": ping\n\n" in sent
    assert sent[-1].endswith(b"data: [DONE]\n\n")
