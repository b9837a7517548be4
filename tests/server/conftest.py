"""A server on real sockets over the scripted engine."""

from collections.abc import Iterator

import httpx
import pytest

from laya_desktop.server.listener import Listener

from .scripted import WAIT_S, FakeHandle, Server


@pytest.fixture
def handle() -> Iterator[FakeHandle]:
    fake = FakeHandle()
    yield fake
    fake.stop()


@pytest.fixture
def server(handle: FakeHandle) -> Iterator[Server]:
    listener = handle.run(Listener.open(handle, "127.0.0.1", 0)).result(WAIT_S)
    yield Server(handle, listener)
    handle.run(listener.close(grace_s=0)).result(WAIT_S)


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=WAIT_S, trust_env=False) as http:
        yield http
