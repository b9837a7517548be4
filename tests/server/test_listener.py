"""Ports, addresses, closing, and the command."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing

import httpx
import pytest

from laya_desktop.core.errors import LayaError
from laya_desktop.core.events import Delta
from laya_desktop.server.__main__ import main as command
from laya_desktop.server.listener import Listener, PortTakenError

from .scripted import WAIT_S, Server, accepted, finished, hang_after, read_all, read_until, routed

STREAM = json.dumps({"messages": [{"role": "user", "content": "hi"}], "stream": True}).encode()


def open_listener(handle, host="127.0.0.1", port=0):
    return handle.run(Listener.open(handle, host, port)).result(WAIT_S)


def close(handle, listener, grace_s=0.0):
    handle.run(listener.close(grace_s)).result(WAIT_S)


@pytest.fixture
def taken():
    with closing(socket.socket()) as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_taken_port_names_its_owner_and_a_free_one(handle, taken):
    with pytest.raises(PortTakenError) as caught:
        open_listener(handle, port=taken)
    assert f"Port {taken} is in use by" in caught.value.info.message
    assert str(os.getpid()) in caught.value.info.message
    free = caught.value.free_port
    assert caught.value.info.hint == f"Port {free} is free."
    listener = open_listener(handle, port=free)
    assert listener.port == free
    close(handle, listener)


def test_the_same_port_again_right_after(handle):
    listener = open_listener(handle)
    port = listener.port
    with closing(Server(handle, listener).connect()) as sock:
        sock.sendall(f"GET /health HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
        read_until(sock, b"}")
        close(handle, listener)  # the server closes first: its end stays in TIME_WAIT
        assert sock.recv(1) == b""
    again = open_listener(handle, port=port)
    assert again.port == port
    close(handle, again)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_addresses(handle, host):
    if host == "::1" and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    listener = open_listener(handle, host)
    assert httpx.get(f"{listener.url}/health", trust_env=False).status_code == 200
    close(handle, listener)


def test_an_address_of_another_computer(handle):
    handle.configure(allow_network=True, api_keys=["k"])
    with pytest.raises(LayaError, match=r"cannot listen on 192\.0\.2\.1"):
        open_listener(handle, "192.0.2.1")
    with pytest.raises(LayaError, match="cannot listen on no such name"):
        open_listener(handle, "no such name")


def test_the_network_is_off_by_default(handle):
    with pytest.raises(LayaError, match=r"may not listen on 0\.0\.0\.0"):
        open_listener(handle, "0.0.0.0")


def test_all_addresses(handle):
    handle.configure(allow_network=True, api_keys=["k"])
    listener = open_listener(handle, "0.0.0.0")
    headers = {"x-api-key": "k"}
    assert httpx.get(f"{listener.url}/v1/models", headers=headers, trust_env=False).status_code == 200
    close(handle, listener)


def test_closing_refuses_the_new_and_cuts_off_the_rest(handle):
    handle.script = hang_after(routed(), accepted(), Delta(text="a"))
    listener = open_listener(handle)
    server = Server(handle, listener)
    with closing(server.connect()) as sock:
        sock.sendall(server.post(STREAM))
        read_until(sock, b'"content":"a"')
        close(handle, listener)
        handle.cancelled.get(timeout=WAIT_S)
        with pytest.raises(ConnectionError):
            server.connect()
        assert b"[DONE]" not in read_all(sock)
    close(handle, listener)  # again


def test_closing_lets_answers_finish(handle):
    closing_down = asyncio.Event()

    async def script(request):
        yield routed()
        yield accepted()
        yield Delta(text="a")
        await closing_down.wait()
        yield finished()

    handle.script = script
    listener = open_listener(handle)
    server = Server(handle, listener)
    with closing(server.connect()) as sock:
        sock.sendall(server.post(STREAM, close=False))
        read_until(sock, b'"content":"a"')
        ended = handle.run(listener.close(WAIT_S))

        async def release():
            closing_down.set()

        handle.run(release()).result(WAIT_S)
        assert b"[DONE]" in read_all(sock)
        ended.result(WAIT_S)


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors")
def test_without_descriptors_connections_wait_and_the_log_stays_short(handle, server, caplog):
    import resource

    clients = [socket.socket() for _ in range(5)]
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (clients[-1].fileno() + 1, before[1]))
        with contextlib.suppress(OSError):
            while True:
                used.append(os.dup(0))
        for client in clients:
            client.connect(("127.0.0.1", server.port))
        time.sleep(2.5)  # asyncio tries again every second
        said = caplog.messages
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in used:
            os.close(descriptor)
    assert len(said) == 1
    assert said[0].startswith("New connections have to wait: ")
    for client in clients:
        with client:
            client.settimeout(WAIT_S)
            client.sendall(f"GET /health HTTP/1.1\r\nHost: localhost:{server.port}\r\n\r\n".encode())
            assert b"200 OK" in read_until(client, b"}")


def test_other_troubles_of_the_loop_are_told_as_before(handle, server, caplog):
    async def trouble():
        asyncio.get_running_loop().call_exception_handler({"message": "something else"})

    handle.run(trouble()).result(WAIT_S)
    assert caplog.messages == ["something else"]


def start_command(tmp_path, *arguments, config=""):
    file = tmp_path / "config.yaml"
    file.write_text(config)
    return subprocess.Popen(
        [sys.executable, "-m", "laya_desktop.server", "--config", str(file), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LAYA_HOME": str(tmp_path)},
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_a_signal(tmp_path, number):
    with start_command(tmp_path, "--port", "0") as process:
        line = process.stdout.readline()
        url = line.split()[-1]
        assert httpx.get(f"{url}/health", trust_env=False).status_code == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.slow
def test_the_command_says_in_one_line_why_it_cannot_serve(tmp_path, taken):
    for arguments, config, lines in [
        (["--port", str(taken)], "", 1),
        (["--host", "0.0.0.0"], "", 1),
        ([], "server: {port: many, hots: x}\n", 2),
    ]:
        with start_command(tmp_path, *arguments, config=config) as process:
            out, err = process.communicate(timeout=30)
        assert process.returncode == 1
        assert out == ""
        assert len(err.splitlines()) == lines, err


@pytest.mark.parametrize("port", ["99999", "-1", "many", "1.5"])
def test_the_command_knows_what_a_port_is(port, capsys):
    with pytest.raises(SystemExit):
        command(["--port", port])
    assert "a port is a number from 0 to 65535" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_knows_no_qt(tmp_path):
    code = "import sys, laya_desktop.server.__main__; print({'PySide6', 'qasync'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
