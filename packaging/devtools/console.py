"""Saying what happens: sentences, progress of long steps, and errors that help."""

import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

QUIET_INTERVAL_S = 30.0
"""How often a long step reports when the output is not a terminal."""


class DevError(Exception):
    """A failure whose text tells the reader what to do."""


def say(text: str) -> None:
    print(text, flush=True)


def run_logged(title: str, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
    """Run a long command; show its elapsed time and last line; keep all of its output in `log`.

    Raises DevError with the end of the output if the command fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    tail: deque[str] = deque(maxlen=15)
    started = time.monotonic()
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=env,
    ) as process:
        reader = threading.Thread(target=_copy_lines, args=(process, log, tail), daemon=True)
        reader.start()
        try:
            _show_progress(title, process, tail, started)
        except KeyboardInterrupt:
            process.terminate()
            raise
        reader.join()
    if process.returncode != 0:
        raise DevError(f"{title} failed. {_advice(tail)}\n\n" + "\n".join(tail) + f"\n\nAll of it: {log}")
    say(f"{title}: done in {time.monotonic() - started:.0f} s")


def _copy_lines(process: subprocess.Popen[str], log: Path, tail: deque[str]) -> None:
    assert process.stdout is not None
    with log.open("w", encoding="utf-8") as file:
        for line in process.stdout:
            file.write(line)
            if line.strip():
                tail.append(line.rstrip())


def _show_progress(title: str, process: subprocess.Popen[str], tail: deque[str], started: float) -> None:
    terminal = sys.stdout.isatty()
    interval = 0.5 if terminal else QUIET_INTERVAL_S
    if not terminal:
        say(f"{title} …")
    while True:
        try:
            process.wait(interval)
            break
        except subprocess.TimeoutExpired:
            line = f"{title} … {time.monotonic() - started:.0f} s"
            if terminal:
                width = shutil.get_terminal_size().columns - 1
                last = tail[-1].strip() if tail else ""
                print(f"\r{f'{line}  {last}'[:width]:{width}}", end="", flush=True)
            else:
                say(line)
    if terminal:
        print("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r", end="", flush=True)


def _advice(tail: Sequence[str]) -> str:
    text = "\n".join(tail).lower()
    if "no space left" in text:
        return "The disk is full: free a few gigabytes and call it again."
    if "permission denied" in text:
        return "A folder is not writable for you: see the path below."
    network = ("connection", "timed out", "name resolution", "no matching distribution", "proxy", "ssl")
    if any(word in text for word in network):
        return "The package index could not be reached or lacks a package: check network, proxy and pip.conf."
    return "Its last lines:"
