"""The child process: serves exactly one model with one backend until its input closes.

The main thread drives the backend; a second thread only reads frames, so that a cancel arrives while a batch
is being computed.
"""

import importlib
import logging
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import BinaryIO

from laya_desktop.backends.base import Backend
from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.worker.protocol import (
    Cancel,
    Command,
    Events,
    Generate,
    Load,
    Loaded,
    LoadFailed,
    LoadProgress,
    Report,
    Shutdown,
    UseThreads,
    pack,
    read_command,
)

log = logging.getLogger(__name__)

_BACKENDS = {
    "gguf": ("laya_desktop.backends.gguf", "GgufBackend"),
    "fake": ("laya_desktop.backends.fake", "FakeBackend"),
}

_ORPHAN_GRACE_S = 2.0
_PROGRESS_INTERVAL_S = 0.1

CommandQueue = queue.SimpleQueue[Command]


def create_backend(name: str) -> Backend:
    """The backend called `name`, its libraries imported. Raises LayaError(BACKEND_MISSING)."""
    if name not in _BACKENDS:
        raise LayaError(
            ErrorCode.BACKEND_MISSING,
            f"The backend '{name}' is not part of this version.",
            hint="Use a GGUF file for this model.",
        )
    module_name, class_name = _BACKENDS[name]
    try:
        module = importlib.import_module(module_name)
    except (ImportError, OSError) as error:
        raise LayaError(
            ErrorCode.BACKEND_MISSING,
            f"The library behind the backend '{name}' cannot be loaded: {error}.",
            hint="Install it again with: python3 packaging/dev.py run",
        ) from error
    backend: Backend = getattr(module, class_name)()
    return backend


def serve(commands: CommandQueue, report: Callable[[Report], None]) -> None:
    """Obey `commands` until Shutdown. The first one has to be Load. Runs in one thread."""
    first = commands.get()
    if not isinstance(first, Load):
        return
    backend = _load(first, report)
    if backend is None:
        return
    try:
        while _obey(backend, commands):
            events = backend.step()
            if events:
                report(Events(events))
    finally:
        backend.close()


def _load(command: Load, report: Callable[[Report], None]) -> Backend | None:
    last = 0.0

    def on_progress(fraction: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _PROGRESS_INTERVAL_S:
            last = now
            report(LoadProgress(fraction))

    try:
        backend = create_backend(command.spec.backend)
        info = backend.load(command.spec, on_progress)
    except LayaError as error:
        report(LoadFailed(error.info))
        return None
    report(Loaded(info))
    return backend


def _obey(backend: Backend, commands: CommandQueue) -> bool:
    """Apply every command that has arrived, waiting for one while there is nothing to compute.
    False once the worker should end."""
    while True:
        try:
            command = commands.get(block=not backend.has_work)
        except queue.Empty:
            return True
        match command:
            case Generate():
                backend.submit(command.request_id, command.messages, command.sampling)
            case Cancel():
                backend.cancel(command.request_id)
            case UseThreads(count=count):
                backend.use_threads(count)
            case Shutdown():
                return False
            case Load():
                log.error("a second Load was ignored")


def _take_over_stdio() -> tuple[BinaryIO, BinaryIO]:
    """Keep the protocol's pipes to ourselves: whatever prints to stdout from now on lands in the log."""
    commands_fd, reports_fd = os.dup(0), os.dup(1)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(commands_fd, os.O_BINARY)
        msvcrt.setmode(reports_fd, os.O_BINARY)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return os.fdopen(commands_fd, "rb"), os.fdopen(reports_fd, "wb", buffering=0)


def _read_commands(stream: BinaryIO, commands: CommandQueue) -> None:
    """Runs in a thread of its own. Ends the process once there is no more to read, for any reason."""
    try:
        while (command := read_command(stream)) is not None:
            commands.put(command)
    except Exception:
        log.exception("the engine wrote something that is not a command")
    finally:
        # Native code may be busy for long: do not outlive the engine by more than the grace.
        commands.put(Shutdown())
        time.sleep(_ORPHAN_GRACE_S)
        os._exit(0)


def main() -> int:
    """Entry of `laya-desktop worker`."""
    stream_in, stream_out = _take_over_stdio()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    commands: CommandQueue = queue.SimpleQueue()
    threading.Thread(target=_read_commands, args=(stream_in, commands), daemon=True).start()

    def report(frame: Report) -> None:
        stream_out.write(pack(frame))

    try:
        serve(commands, report)
    except BrokenPipeError:
        log.info("the engine closed the pipe")
    return 0
