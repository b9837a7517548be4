"""Binding, serving and closing. Uses uvicorn's HTTP connection on a loop that is not ours alone, so it does
without uvicorn's own server, which handles signals and wakes ten times a second."""

import asyncio
import contextlib
import errno
import logging
import socket
import sys
import time
from typing import Any

import psutil
import uvicorn
from uvicorn.server import ServerState

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.engine.handle import EngineHandle
from laya_desktop.server.app import build_app
from laya_desktop.server.protocol import Connection
from laya_desktop.server.security import check_exposure

log = logging.getLogger(__name__)

_BACKLOG = 128
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_WARNING_EVERY_S = 60.0
_PORTS_TRIED = 20
_ABORT_WAIT_S = 2.0
_BOTH_LOOPBACKS = ("localhost", "127.0.0.1")


class PortTakenError(LayaError):
    """The port is in use. `free_port` was free a moment ago; None if none was found nearby."""

    def __init__(self, message: str, free_port: int | None) -> None:
        hint = f"Port {free_port} is free." if free_port else "Choose another port."
        super().__init__(ErrorCode.INVALID_REQUEST, message, hint=hint)
        self.free_port = free_port


class Listener:
    """A running server. Make it with `open`; its methods run on the engine's loop."""

    def __init__(self, host: str, port: int, state: ServerState) -> None:
        self.host = host
        self.port = port
        self._state = state
        self._servers: list[asyncio.Server] = []

    @classmethod
    async def open(cls, handle: EngineHandle, host: str, port: int) -> "Listener":
        """Listen on `host` and `port`; 0 takes a free port. Run it by `EngineHandle.run`.

        127.0.0.1 and localhost also listen on ::1 where there is IPv6, because clients may try that first.
        Raises PortTakenError, or LayaError if the address is not ours or the settings forbid it.
        """
        check_exposure(handle.config.server, host)
        sockets = await asyncio.to_thread(bind, host, port)
        config = uvicorn.Config(
            build_app(handle),
            http=Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,  # lines would hold query strings, which may hold keys
            proxy_headers=False,
        )
        config.load()
        listener = cls(host, sockets[0].getsockname()[1], ServerState())
        loop = asyncio.get_running_loop()
        if not isinstance(loop.get_exception_handler(), _AcceptTrouble):
            loop.set_exception_handler(_AcceptTrouble(loop.get_exception_handler()))
        for sock in sockets:
            # asyncio accepts as many connections in a row as its backlog says, and without descriptors fails,
            # reports and arms a retry as many times over. The system's backlog is set again.
            server = await loop.create_server(
                lambda: Connection(config, listener._state, {}), sock=sock, backlog=1
            )
            sock.listen(_BACKLOG)
            listener._servers.append(server)
        return listener

    @property
    def url(self) -> str:
        """The address to show and copy."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    async def close(self, grace_s: float = 5.0) -> None:
        """Refuse new connections at once, let answers under way finish for `grace_s` seconds, then cut them
        off, which cancels their requests. Idempotent. Call it before `EngineHandle.stop`."""
        for server in self._servers:
            server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        await self._finished(grace_s)
        for connection in list(self._state.connections):
            connection.transport.abort()
        await self._finished(_ABORT_WAIT_S)

    async def _finished(self, timeout_s: float) -> None:
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=timeout_s)


class _AcceptTrouble:
    """Handles what a loop reports: that no connection can be accepted, now and then in one line, and the rest
    as before."""

    def __init__(self, before: Any) -> None:
        self._before = before
        self._quiet_until = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in _OUT_OF_DESCRIPTORS and "socket" in context):
            (self._before or type(loop).default_exception_handler)(loop, context)
        elif time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + _WARNING_EVERY_S
            log.warning("New connections have to wait: %s.", error.strerror)


def bind(host: str, port: int) -> list[socket.socket]:
    """Listening sockets for `host`, all on the same port. Blocks. Raises PortTakenError or LayaError."""
    try:
        return _bind(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise _taken(host, port) from None
        if isinstance(error, PermissionError):
            raise LayaError(
                ErrorCode.INVALID_REQUEST,
                f"The system does not let this program listen on port {port}.",
                hint="Choose a port above 1023.",
            ) from None
        raise LayaError(
            ErrorCode.INVALID_REQUEST,
            f"The server cannot listen on {host}, port {port}: {error.strerror or error}.",
            hint="127.0.0.1 always works.",
        ) from None


def _bind(host: str, port: int) -> list[socket.socket]:
    first_host = "127.0.0.1" if host in _BOTH_LOOPBACKS else host
    family, _, _, _, address = socket.getaddrinfo(first_host, port, type=socket.SOCK_STREAM)[0]
    sockets = [_listen(family, address)]
    if host not in _BOTH_LOOPBACKS:
        return sockets
    try:
        sockets.append(_listen(socket.AF_INET6, ("::1", sockets[0].getsockname()[1])))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:  # clients of "localhost" might reach the other program
            sockets[0].close()
            raise
    return sockets


def _listen(family: int, address: tuple[object, ...]) -> socket.socket:
    # asyncio turns Nagle's algorithm off only where the protocol is named; with it, answers wait for 40 ms.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform == "win32":
            # There, SO_REUSEADDR would let two programs share the port.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address[0] != "::"))
        sock.bind(address)
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def _taken(host: str, port: int) -> PortTakenError:
    owner = _owner(port)
    message = f"Port {port} is in use{f' by {owner}' if owner else ''}."
    return PortTakenError(message, _next_free(host, port))


def _owner(port: int) -> str:
    """The program that listens on `port`; empty where the system does not tell."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            holds_it = (
                connection.status == psutil.CONN_LISTEN and getattr(connection.laddr, "port", 0) == port
            )
            if holds_it and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    return ""


def _next_free(host: str, port: int) -> int | None:
    for candidate in range(port + 1, min(port + 1 + _PORTS_TRIED, 65536)):
        try:
            sockets = _bind(host, candidate)
        except OSError:
            continue
        for sock in sockets:
            sock.close()
        return candidate
    return None
