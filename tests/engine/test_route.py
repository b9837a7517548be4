"""Decisions without running anything: by a running engine, and without one."""

from pathlib import Path

import filelock
import msgspec
import pytest

from laya_desktop.config.store import ConfigStore
from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.paths import Paths
from laya_desktop.engine.offline import OfflineEngine

from .collect import DEADLINE_S, request
from .conftest import CountedWorker, StartEngine


def test_a_decision_loads_nothing(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}, "bigger": {}})
    decision = handle.route(request(text="hello there")).result(DEADLINE_S)
    assert (decision.model, decision.task) == ("m", "chat")
    assert {candidate.model for candidate in decision.candidates} == {"m", "bigger"}
    assert handle.route(request("bigger")).result(DEADLINE_S).rule == "named"
    assert CountedWorker.started == 0


def test_the_caller_may_know_the_task(start_engine: StartEngine) -> None:
    rule = "router: {rules: [{name: hard, when: {task: reasoning}, use: bigger}]}\n"
    handle = start_engine({"m": {}, "bigger": {}}, rule)
    asked = msgspec.structs.replace(request(text="hello there"), task="reasoning")
    decision = handle.route(asked).result(DEADLINE_S)
    assert (decision.model, decision.task) == ("bigger", "reasoning")


def test_on_the_engines_own_thread_it_is_done_at_once(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}})

    async def ask() -> bool:
        return handle.route(request()).done()

    assert handle.run(ask()).result(DEADLINE_S)


def test_what_it_raises(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}})
    with pytest.raises(LayaError) as caught:
        handle.route(request("none")).result(DEADLINE_S)
    assert caught.value.info.code is ErrorCode.MODEL_NOT_FOUND
    handle.stop()
    with pytest.raises(LayaError) as caught:
        handle.route(request()).result(DEADLINE_S)
    assert caught.value.info.code is ErrorCode.ENGINE_STOPPED


def test_without_an_engine(tmp_path: Path) -> None:
    paths = Paths.below(tmp_path)
    paths.data.mkdir()
    file = tmp_path / "config.yaml"
    file.write_text(
        "models:\n  - {name: m, path: /none/m.gguf, keep_in_memory: true, aliases: [b]}\n"
        "  - {name: n, path: /none/n.gguf}\nrouter: {rules: [{name: r, when: {task: code}, use: n}]}\n"
    )
    store = ConfigStore(file)
    assert store.load(), store.problems
    # As if the app were open.
    with filelock.FileLock(paths.data / "engine.lock"), OfflineEngine(store, paths) as engine:
        decision = engine.route(request())
        assert decision.model == "m"
        assert all(candidate.excluded for candidate in decision.candidates)
        assert engine.route(request("b")).model == "m"
        with pytest.raises(LayaError):
            engine.route(request("none"))
