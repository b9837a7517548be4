"""POST /v1/route: a decision and nothing else."""

import json
import socket
from contextlib import closing

import httpx
import msgspec
import pytest

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.types import Candidate, Decision, Message, Role

from .scripted import WAIT_S, read_until

PATH = "/v1/route"
HI = [{"role": "user", "content": "hi"}]


def test_a_decision(client, handle):
    handle.decision = Decision(
        model="smol",
        rule="small talk",
        reason="greeting",
        task="chat",
        candidates=(Candidate(model="smol"), Candidate(model="千问", excluded="It is too large.")),
        elapsed_us=12.5,
    )
    response = client.post(PATH, json={"prompt": "ping"})
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert msgspec.convert(response.json(), Decision) == handle.decision
    assert response.json()["candidates"][1]["excluded"] == "It is too large."
    assert handle.submitted.empty()


@pytest.mark.parametrize(
    ("body", "model", "messages"),
    [
        ({"prompt": "ping"}, "auto", [(Role.USER, "ping")]),
        ({"prompt": ""}, "auto", [(Role.USER, "")]),
        ({"prompt": "ping", "messages": None, "features": None}, "auto", [(Role.USER, "ping")]),
        ({"prompt": "ping", "messages": [], "model": "auto"}, "auto", [(Role.USER, "ping")]),
        ({"messages": HI, "model": "smol"}, "smol", [(Role.USER, "hi")]),
        (
            {"messages": [{"role": "developer", "content": [{"type": "text", "text": "Be brief."}]}, *HI]},
            "auto",
            [(Role.SYSTEM, "Be brief."), (Role.USER, "hi")],
        ),
        ({"messages": HI, "temperature": 0, "stream": True, "tools": [{}]}, "auto", [(Role.USER, "hi")]),
    ],
)
def test_what_the_router_is_asked(client, handle, body, model, messages):
    assert client.post(PATH, json=body).status_code == 200
    (request,) = handle.asked
    assert (request.model, request.task) == (model, None)
    assert request.messages == tuple(Message(role, content) for role, content in messages)


def test_a_known_task_is_passed_on(client, handle):
    features = {"task_type": "chat", "something": [1, 2]}
    assert client.post(PATH, json={"prompt": "ping", "features": features}).status_code == 200
    assert handle.asked[0].task == "chat"


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        (b"", 400, None),
        (b"[]", 400, None),
        (b"{}", 400, "messages"),
        (b'{"messages": []}', 400, "messages"),
        (b'{"prompt": 5}', 400, "prompt"),
        (b'{"prompt": "a", "messages": [{"role": "user", "content": "b"}]}', 400, "prompt"),
        (b'{"messages": [{"role": "robot", "content": "b"}]}', 400, "messages[0].role"),
        (b'{"prompt": "a", "features": "chat"}', 400, "features"),
        (b'{"prompt": "a", "features": {"task_type": "cooking"}}', 400, "features.task_type"),
        (b'{"prompt": "a", "features": {"task_type": 5}}', 400, "features.task_type"),
        (b'{"prompt": "a", "model": "none"}', 404, "model"),
        (b'{"prompt": "a", "model": "/models/smol.gguf"}', 404, "model"),
    ],
)
def test_refusals_name_the_field(client, handle, body, status, param):
    response = client.post(PATH, content=body, headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["error"]["param"]) == (status, param)
    assert not handle.asked


def test_the_gate_stands_before_it(client, handle):
    assert client.post(PATH, content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    assert client.post(PATH, json={"prompt": "a"}, headers={"host": "evil.example"}).status_code == 403
    assert client.post(PATH, json={"prompt": "a"}, headers={"origin": "http://evil"}).status_code == 403
    handle.configure(api_keys=["secret"])
    assert client.post(PATH, json={"prompt": "a"}).status_code == 401
    good = client.post(PATH, json={"prompt": "a"}, headers={"authorization": "Bearer secret"})
    assert good.status_code == 200
    assert len(handle.asked) == 1


def test_other_verbs(client):
    response = client.get(PATH)
    assert (response.status_code, response.json()["error"]["code"]) == (405, "method_not_allowed")


def test_errors_of_the_engine(client, handle):
    handle.decision = LayaError(ErrorCode.ENGINE_STOPPED, "The app is quitting.")
    response = client.post(PATH, json={"prompt": "a"})
    assert (response.status_code, response.json()["error"]["code"]) == (503, "engine_stopped")
    handle.decision = RuntimeError("a defect")
    response = client.post(PATH, json={"prompt": "a"})
    assert (response.status_code, response.json()["error"]["code"]) == (500, "internal")


def test_a_decision_that_takes_time(client, handle):
    handle.decide_later = True
    assert client.post(PATH, json={"prompt": "a"}).json()["model"] == "smol"


def test_a_long_prompt(client, handle):
    prompt = "字" * 100_000
    assert client.post(PATH, json={"prompt": prompt}).status_code == 200
    assert handle.asked[0].messages[0].content == prompt


def test_the_body_may_come_later_and_in_parts(server):
    body = json.dumps({"prompt": "ping"}).encode()
    head = server.post(body).replace(b"/v1/chat/completions", PATH.encode())[: -len(body)]
    with closing(server.connect()) as sock:
        for part in (head, body[:3]):
            sock.sendall(part)
            sock.settimeout(0.05)
            with pytest.raises(TimeoutError):  # nothing is answered before the end
                sock.recv(1)
        sock.settimeout(WAIT_S)
        sock.sendall(body[3:])
        assert b'"model":"smol"' in read_until(sock, b"}")


def test_an_answer_is_one_packet(server):
    body = json.dumps({"prompt": "ping"}).encode()
    with closing(server.connect()) as sock:
        for _ in range(3):
            sock.sendall(server.post(body, close=False).replace(b"/v1/chat/completions", PATH.encode()))
            received = sock.recv(65536)
            assert received.startswith(b"HTTP/1.1 200 OK\r\n")
            assert received.endswith(b"}")


def test_an_answer_without_a_body_ends(server):
    with closing(server.connect()) as sock:
        for _ in range(2):
            sock.sendall(f"HEAD /health HTTP/1.1\r\nHost: localhost:{server.port}\r\n\r\n".encode())
            assert read_until(sock, b"\r\n\r\n").startswith(b"HTTP/1.1 200 OK\r\n")


def test_no_answer_waits_for_an_acknowledgement(server):
    """Nagle's algorithm would hold the second packet of an answer back for 40 ms."""
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        client.get("/health")
        (connection,) = server.connections
        assert connection.transport.get_extra_info("socket").getsockopt(
            socket.IPPROTO_TCP, socket.TCP_NODELAY
        )
