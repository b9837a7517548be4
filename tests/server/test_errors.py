"""Errors as they leave the server."""

import json

import httpx

from laya_desktop.core.errors import ErrorCode, ErrorInfo
from laya_desktop.core.events import Failed
from laya_desktop.server import sse
from laya_desktop.server.errors import ApiError

from .scripted import FakeHandle, accepted, replay, routed

INFO = ErrorInfo(
    code=ErrorCode.MODEL_FILE_MISSING,
    message="There is no file /m/\ud83d.gguf.",
    hint="\udfff",
    param="\udc00",
)
BODY = {"messages": [{"role": "user", "content": "hi"}]}


def test_texts_that_are_not_utf_8_are_told_all_the_same(handle: FakeHandle, client: httpx.Client) -> None:
    handle.script = replay(routed(), Failed(error=INFO))
    answer = client.post("/v1/chat/completions", json=BODY)
    assert answer.status_code == 500
    assert answer.json()["error"] == {
        "message": "There is no file /m/?.gguf. ?",
        "type": "server_error",
        "param": "?",
        "code": "model_file_missing",
    }
    handle.script = replay(routed(), accepted(), Failed(error=INFO))
    assert "/m/?.gguf" in client.post("/v1/chat/completions", json={**BODY, "stream": True}).text


def test_an_error_is_always_json() -> None:
    error = ApiError(404, "\ud83d", code="\ud83d", param="\ud83d").payload()
    assert json.loads(sse.event(error).removeprefix(b"data: "))["error"]["message"] == "?"
