"""The engine's side of a worker: starts the child, exchanges frames, says why it ended.

Everything here runs on the engine's loop.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from laya_desktop.core.errors import ErrorCode, ErrorInfo
from laya_desktop.worker.protocol import (
    HEADER,
    Command,
    FrameError,
    Report,
    Shutdown,
    frame_length,
    pack,
    report_decoder,
)

log = logging.getLogger(__name__)

_PIPE_BUFFER_BYTES = 1 << 20
_SHUTDOWN_S = 3.0
_TERMINATE_S = 2.0
_KEPT_LOG_BYTES = 1 << 20

# OpenMP's default spinning starves every other process on a busy machine (90 → 8 tokens/s beside three
# of them); a short spin keeps full speed on a quiet one. A native abort must not start a debugger.
_WORKER_ENVIRONMENT = {"GOMP_SPINCOUNT": "1000", "GGML_NO_BACKTRACE": "1", "PYTHONUNBUFFERED": "1"}

ReportSink = Callable[[Report], None]
ExitSink = Callable[[ErrorInfo], None]


class Worker(Protocol):
    """A running worker. Used on the engine's loop only."""

    @property
    def pid(self) -> int | None: ...

    async def start(self) -> None: ...

    def send(self, command: Command) -> None: ...

    async def stop(self) -> None: ...

    def kill(self) -> None: ...


class WorkerFactory(Protocol):
    """Makes a worker that is not started. `on_exit` is called once, also after `stop`."""

    def __call__(self, name: str, on_report: ReportSink, on_exit: ExitSink) -> Worker: ...


def worker_command() -> list[str]:
    """How this very program is started as a worker, frozen or not."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "worker"]
    return [sys.executable, "-P", "-m", "laya_desktop", "worker"]


class WorkerProcess:
    """A child process that serves one model."""

    def __init__(self, name: str, log_file: Path, on_report: ReportSink, on_exit: ExitSink) -> None:
        self._name = name
        self._log_file = log_file
        self._on_report = on_report
        self._on_exit = on_exit
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start the child. Raises OSError if the system refuses."""
        self._log_file.parent.mkdir(parents=True, exist_ok=True)
        _shorten(self._log_file)
        with self._log_file.open("ab") as log_stream:
            self._process = await asyncio.create_subprocess_exec(
                *worker_command(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log_stream,
                env=os.environ | _WORKER_ENVIRONMENT,
                limit=_PIPE_BUFFER_BYTES,
                start_new_session=sys.platform != "win32",
            )
        self._reader = asyncio.create_task(self._read(), name=f"worker-reader-{self._name}")

    def send(self, command: Command) -> None:
        """Write one frame; a child that is gone is noticed by the reader, not here."""
        if self._process is None or self._process.stdin is None:
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
            self._process.stdin.write(pack(command))

    async def stop(self) -> None:
        """Ask, then terminate, then kill; returns when the child and its reader have ended."""
        if self._process is None or self._reader is None:
            return
        self.send(Shutdown())
        for deadline_s, escalate in (
            (_SHUTDOWN_S, self._process.terminate),
            (_TERMINATE_S, self._process.kill),
        ):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._reader), deadline_s)
                return
            with contextlib.suppress(ProcessLookupError):
                escalate()
        await self._reader

    def kill(self) -> None:
        """End the child at once: used while it loads, when nobody would read a request to stop."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        stream = self._process.stdout
        try:
            while True:
                body = await stream.readexactly(frame_length(await stream.readexactly(HEADER.size)))
                self._on_report(report_decoder.decode(body))
        except (asyncio.IncompleteReadError, ConnectionResetError):
            pass
        except (FrameError, ValueError):
            log.exception("worker %s wrote something that is not a frame", self._name)
            self.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._on_exit(describe_exit(self._name, await self._process.wait(), self._log_file))


def _shorten(log_file: Path) -> None:
    """Keep a log that grows over restarts within bounds."""
    with contextlib.suppress(OSError):
        if log_file.stat().st_size > _KEPT_LOG_BYTES:
            log_file.replace(log_file.with_suffix(".old.log"))


def describe_exit(name: str, returncode: int, log_file: Path) -> ErrorInfo:
    """The end of a worker as an error that names its cause. Negative codes are POSIX signals; Windows
    reports exceptions as NTSTATUS codes."""
    cause, hint = _cause(returncode)
    return ErrorInfo(
        code=ErrorCode.WORKER_CRASHED,
        message=f"The inference engine of '{name}' ended: {cause}.",
        hint=f"{hint} Its log is {log_file}.",
    )


def _cause(returncode: int) -> tuple[str, str]:
    again = "Send the prompt again; the model is loaded anew."
    windows = {0xC000001D: "SIGILL", 0xC0000005: "SIGSEGV", 0xC0000409: "SIGABRT"}
    if returncode < 0:
        try:
            name = signal.Signals(-returncode).name
        except ValueError:
            name = f"signal {-returncode}"
    else:
        name = windows.get(returncode & 0xFFFFFFFF, "")
    match name:
        case "SIGILL":
            return (
                "illegal instruction (SIGILL): its build needs a CPU feature that this machine lacks",
                "Install it again with: python3 packaging/dev.py run --rebuild-engine",
            )
        case "SIGKILL":
            return ("it was killed (SIGKILL), most likely because memory ran out", again)
        case "SIGSEGV" | "SIGBUS":
            return (
                f"it crashed ({name}); the model file may have changed while it was in use",
                again,
            )
        case "SIGABRT":
            return ("it aborted (SIGABRT)", again)
        case "":
            return (f"exit code {returncode}", again)
        case _:
            return (f"it was ended by {name}", again)
