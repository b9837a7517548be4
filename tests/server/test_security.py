"""Who gets in: hosts, origins, keys and content types."""

import pytest
from starlette.routing import Route

from laya_desktop.config.schema import ServerConfig
from laya_desktop.core.errors import LayaError
from laya_desktop.server.app import build_app
from laya_desktop.server.security import check_exposure, is_loopback, refusal

KEY = "sk-sésame"
BODY = {"messages": [{"role": "user", "content": "hi"}]}


def scope(method="GET", path="/v1/models", server=("127.0.0.1", 8080), version="1.1", headers=()):
    pairs = [(name.encode(), value.encode()) for name, value in headers]
    return {
        "type": "http",
        "method": method,
        "path": path,
        "server": server,
        "http_version": version,
        "headers": pairs,
    }


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST.",
        "localhost:8080",
        "127.0.0.1",
        "127.0.0.1:8080",
        "127.1.2.3:8080",
        "[::1]:8080",
        "[::1]",
        "[::ffff:127.0.0.1]:8080",
    ],
)
def test_loopback_names_are_ours(host):
    assert refusal(scope(headers=[("host", host)]), ServerConfig()) is None


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "",
        ":8080",
        "localhost:9999",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "localhost/evil",
        "192.168.1.5:8080",
        "[::2]:8080",
        "[localhost",
        "2130706433",
    ],
)
def test_other_hosts_are_refused(method, host):
    error = refusal(scope(method, headers=[("host", host)]), ServerConfig())
    assert error
    assert error.status == 403


def test_host_lines_must_be_one():
    assert refusal(scope(), ServerConfig()).status == 403
    assert refusal(scope(headers=[("host", "localhost")] * 2), ServerConfig()).status == 403
    assert refusal(scope(version="1.0"), ServerConfig()) is None


def test_the_network_needs_permission_and_a_key_and_then_any_name_will_do():
    request = scope(server=("192.168.1.5", 8080), headers=[("host", "laya.lan:80"), ("x-api-key", "k")])
    assert refusal(request, ServerConfig()).status == 403
    assert refusal(request, ServerConfig(allow_network=True)).status == 403
    assert refusal(request, ServerConfig(api_keys=("k",))).status == 403
    assert refusal(request, ServerConfig(allow_network=True, api_keys=("k",))) is None


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000", "http://[", ""])
@pytest.mark.parametrize("method", ["POST", "OPTIONS", "DELETE"])
def test_foreign_origins_change_nothing(client, origin, method):
    headers = {"origin": origin, "access-control-request-private-network": "true"}
    answer = client.request(method, "/v1/chat/completions", headers=headers, json=BODY)
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "forbidden"
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_reading_with_a_foreign_origin_gets_no_cors_header(client):
    answer = client.get("/v1/models", headers={"origin": "https://evil.example"})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_our_own_origin_is_fine(client, server):
    assert client.post("/v1/chat/completions", json=BODY, headers={"origin": server.url}).status_code == 200


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ],
)
def test_only_json_is_taken(client, content_type, status):
    answer = client.post(
        "/v1/chat/completions",
        content=b'{"messages":[{"role":"user","content":"hi"}]}',
        headers={"content-type": content_type},
    )
    assert answer.status_code == status
    assert status == 200 or "error" in answer.json()


def test_a_missing_content_type_and_compression_are_refused(client):
    assert client.post("/v1/chat/completions", content=b"{}").status_code == 415
    headers = {"content-encoding": "gzip"}
    assert client.post("/v1/chat/completions", json=BODY, headers=headers).status_code == 415


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, False),
        ({"authorization": "Bearer wrong"}, False),
        ({"authorization": "Bearer"}, False),
        ({"authorization": KEY}, False),
        ({"authorization": f"Basic {KEY}"}, False),
        ({"authorization": f"Bearer {KEY}x"}, False),
        ({"authorization": f"Bearer {KEY}"}, True),
        ({"authorization": f"bearer {KEY}"}, True),
        ({"authorization": f"Bearer  {KEY}"}, True),
        ({"x-api-key": KEY}, True),
        ({"x-api-key": "second"}, True),
    ],
)
def test_keys(client, handle, headers, allowed):
    handle.configure(api_keys=[KEY, "second"])
    encoded = {name: value.encode() for name, value in headers.items()}
    answer = client.get(f"/v1/models?api_key={KEY}", headers=encoded)
    assert answer.status_code == (200 if allowed else 401)
    if not allowed:
        assert answer.headers["www-authenticate"] == "Bearer"
        assert KEY not in answer.text


def test_every_route_but_health_needs_the_key(client, handle):
    handle.configure(api_keys=[KEY])
    paths = [route.path for route in build_app(handle).routes if isinstance(route, Route)]
    assert len(paths) >= 4
    for path in [*paths, "/docs", "/openapi.json", "/v1/../x", "/v1/%2e%2e/health", "/health/", "//health"]:
        for method in ("GET", "POST"):
            status = client.request(method, path.replace("{name:path}", "smol")).status_code
            assert (status == 401) == (path != "/health"), (method, path, status)


def test_without_keys_any_bearer_is_fine():
    for value in ("Bearer", "Bearer ", "Bearer anything"):
        headers = [("host", "localhost"), ("authorization", value)]
        assert refusal(scope(headers=headers), ServerConfig()) is None
        assert refusal(scope(headers=headers), ServerConfig(api_keys=("k",))).status == 401


def test_keys_are_never_logged(client, handle, caplog):
    handle.configure(api_keys=[KEY])
    with caplog.at_level(0):
        client.get(f"/v1/models?key={KEY}", headers={"authorization": f"Bearer {KEY}".encode()})
        client.get(f"/v1/models?key={KEY}")
    assert KEY not in "".join(record.getMessage() for record in caplog.records if "httpx" not in record.name)


def test_exposure():
    check_exposure(ServerConfig(), "127.0.0.1")
    check_exposure(ServerConfig(), "localhost")
    check_exposure(ServerConfig(), "::1")
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(LayaError, match=host) as caught:
            check_exposure(ServerConfig(api_keys=("k",)), host)
        assert "allow_network" in caught.value.info.hint
        with pytest.raises(LayaError, match="without a key"):
            check_exposure(ServerConfig(allow_network=True), host)
        check_exposure(ServerConfig(allow_network=True, api_keys=("k",)), host)


def test_loopback_names():
    assert is_loopback("::ffff:127.0.0.1")
    assert not is_loopback("::ffff:10.0.0.1")
    assert not is_loopback("")
