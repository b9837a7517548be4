"""``python -m laya_desktop.server``: the engine and its HTTP server without a window."""

import argparse
import contextlib
import os
import signal
import sys
import threading
from pathlib import Path

from laya_desktop.config.store import ConfigStore
from laya_desktop.core.errors import LayaError
from laya_desktop.core.paths import Paths
from laya_desktop.engine.handle import EngineHandle
from laya_desktop.server.listener import Listener

_SIGNAL_POLL_S = 0.5 if sys.platform == "win32" else None
"""On Windows a signal does not interrupt a wait."""
_CLOSE_S = 8.0


def main(argv: list[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM. Returns the exit status; problems go to stderr, one a line."""
    options = _parse(argv)
    paths = Paths.default()
    if options.config and not options.config.exists():
        print(f"{options.config} does not exist.", file=sys.stderr)
        return 1
    store = ConfigStore(options.config or paths.config_file, paths.data)
    if not store.load():
        for problem in store.problems:
            print(problem, file=sys.stderr)
        return 1
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: _stop_or_exit(stop))
    handle = EngineHandle(store, paths)
    try:
        handle.start()
        _serve(handle, options, stop)
    except (LayaError, OSError) as error:
        print(error.info.sentence() if isinstance(error, LayaError) else error, file=sys.stderr)
        return 1
    finally:
        if not handle.stop():
            os._exit(1)
    return 0


def _stop_or_exit(stop: threading.Event) -> None:
    """The first signal ends the server in order, a second one at once. Workers end with their engine."""
    if stop.is_set():
        os._exit(1)
    stop.set()


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m laya_desktop.server", description="Serve local models with an OpenAI-compatible API."
    )
    parser.add_argument("--config", type=Path, help="config file; the user's own if absent")
    parser.add_argument("--host", help="address to listen on; server.host if absent")
    parser.add_argument(
        "--port", type=_port, help="port to listen on, 0 takes a free one; server.port if absent"
    )
    return parser.parse_args(argv)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return int(text)


def _serve(handle: EngineHandle, options: argparse.Namespace, stop: threading.Event) -> None:
    server = handle.config.server
    host = options.host or server.host
    port = server.port if options.port is None else options.port
    listener = handle.run(Listener.open(handle, host, port)).result()
    print(f"Laya Desktop listens on {listener.url}", flush=True)
    while not stop.wait(_SIGNAL_POLL_S):
        pass
    handle.end_requests()
    with contextlib.suppress(TimeoutError):  # a router that hangs must not keep the process
        handle.run(listener.close()).result(_CLOSE_S)


if __name__ == "__main__":
    sys.exit(main())
