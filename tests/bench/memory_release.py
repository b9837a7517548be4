"""What an unload gives back, and whether loading again and again makes the app grow.

Bytes are what the engine's process and its workers have for themselves: shares of libraries would change with
every other program that comes and goes. `unload_gives_back` is the part of what loading and one answer took
that is free again after the unload; `growth` is what the engine's own process gained over the cycles after
the first five, which fill pools and caches.
"""

import json
import tempfile
import threading
from pathlib import Path

import psutil

from laya_desktop.config.store import ConfigStore
from laya_desktop.core.events import TERMINAL, Finished, RequestEvent
from laya_desktop.core.paths import Paths
from laya_desktop.core.types import ChatRequest, Message, Role, Sampling
from laya_desktop.engine.handle import EngineHandle

CYCLES = 50
GIVEN_BACK_BOUND = 0.98
GROWTH_BOUND = 10 * (1 << 20)
_FIRST_CYCLES = 5


def _own() -> int:
    return int(psutil.Process().memory_full_info().uss)


def _all() -> int:
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(int(process.memory_full_info().uss) for process in family)


def _answer(handle: EngineHandle, number: int) -> None:
    """Load the model if need be and have it answer."""
    ended = threading.Event()
    last: list[RequestEvent] = []

    def sink(event: RequestEvent) -> None:
        if isinstance(event, TERMINAL):
            last.append(event)
            ended.set()

    question = Message(Role.USER, f"Count to {number}.")
    sampling = Sampling(temperature=0, max_tokens=4)
    handle.submit(ChatRequest(id=f"r{number}", model="smol", messages=(question,), sampling=sampling), sink)
    if not ended.wait(120) or not isinstance(last[0], Finished):
        raise SystemExit(f"the model did not answer: {last}")


def main(model: Path, cycles: int = CYCLES) -> bool:
    """Print the rows; False if one is beyond its bound."""
    with tempfile.TemporaryDirectory() as folder:
        paths = Paths.below(Path(folder)).create()
        paths.config_file.write_text(json.dumps({"models": [{"name": "smol", "path": str(model)}]}))
        store = ConfigStore(paths.config_file)
        store.load()
        handle = EngineHandle(store, paths)
        handle.start()
        try:
            for number in range(_FIRST_CYCLES):
                _answer(handle, number)
                handle.unload("smol").result(60)
            given_back, first = [], _own()
            for number in range(cycles):
                before = _all()
                _answer(handle, number)
                loaded = _all()
                handle.unload("smol").result(60)
                given_back.append((loaded - _all()) / (loaded - before))
            growth = _own() - first
        finally:
            handle.stop()
    least = min(given_back)
    for figure, value, unit, bound in (
        ("unload_gives_back", round(least, 4), "of what loading took", GIVEN_BACK_BOUND),
        ("growth", round(growth / (1 << 20), 2), "MiB", GROWTH_BOUND >> 20),
    ):
        row = {"bench": "memory", "figure": figure, "value": value, "unit": unit, "n": cycles, "bound": bound}
        print(json.dumps(row), flush=True)
    return least >= GIVEN_BACK_BOUND and growth <= GROWTH_BOUND
