"""The whole path with scripted worker processes: every ending of a request, every death of a worker."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from laya_desktop.config.store import ConfigStore
from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.events import (
    Accepted,
    Cancelled,
    ConfigApplied,
    ConfigRejected,
    Delta,
    EngineEvent,
    Failed,
    Finished,
    Loading,
    ModelStatus,
    Notice,
    Queued,
    Routed,
)
from laya_desktop.core.paths import Paths
from laya_desktop.core.types import ModelState
from laya_desktop.engine import executor
from laya_desktop.engine.handle import EngineHandle

from .collect import DEADLINE_S, Answer, request
from .conftest import CountedWorker, StartEngine


def _failure(answer: Answer) -> tuple[ErrorCode, str]:
    end = answer.end()
    assert isinstance(end, Failed), end
    return end.error.code, end.error.message


def test_events_come_in_order_and_end_once(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {"reply": "one two three"}})
    answer = Answer(handle, request())
    answer.end()
    kinds = [type(event) for event in answer.events if type(event) is not Loading]
    assert kinds[0] is Routed
    assert kinds[1] is Accepted
    assert kinds[-1] is Finished
    assert len(answer.terminals()) == 1
    assert answer.text == "one two three"


def test_eight_requests_for_a_cold_model_load_it_once(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}})
    answers = [Answer(handle, request("m", max_tokens=n + 1)) for n in range(8)]
    assert all(isinstance(answer.end(), Finished) for answer in answers)
    assert CountedWorker.started == 1


def test_a_failed_load_gives_every_waiter_the_reason_and_then_backs_off(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {"load_error": "the file is odd"}})
    answers = [Answer(handle, request("m")) for _ in range(3)]
    assert {_failure(answer) for answer in answers} == {(ErrorCode.MODEL_LOAD_FAILED, "the file is odd")}
    assert CountedWorker.started == 1
    assert _failure(Answer(handle, request("m")))[1] == "the file is odd"
    assert CountedWorker.started == 2
    again = Answer(handle, request("m")).end()
    assert isinstance(again, Failed)
    assert again.error.retry_after_s is not None
    assert CountedWorker.started == 2, "the third try has to wait"


@pytest.mark.parametrize("how", ["SIGKILL", "SIGILL", "SIGABRT", "SIGSEGV", "exit"])
def test_a_dying_worker_ends_its_stream_with_the_cause(start_engine: StartEngine, how: str) -> None:
    handle = start_engine({"m": {"die": how, "die_after": 2}, "other": {"reply": "fine"}})
    answer = Answer(handle, request("m"))
    code, message = _failure(answer)
    assert code is ErrorCode.WORKER_CRASHED
    assert ("exit code 1" if how == "exit" else how) in message
    assert answer.text == "a b"
    assert len(answer.terminals()) == 1
    other = Answer(handle, request("other"))
    assert isinstance(other.end(), Finished), "other models stay usable"


def test_a_worker_killed_from_outside_is_replaced_for_the_next_prompt(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {"endless": True, "pace_s": 0.001}})
    first = Answer(handle, request("m"))
    first.wait_for(Delta)
    (child,) = psutil.Process().children()
    child.send_signal(signal.SIGKILL)
    assert _failure(first)[0] is ErrorCode.WORKER_CRASHED
    assert isinstance(Answer(handle, request("m", max_tokens=3)).end(), Finished)


def test_a_model_that_dies_on_every_prompt_is_not_restarted_in_a_loop(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {"die": "SIGILL", "die_after": 0}})
    for _ in range(6):
        assert _failure(Answer(handle, request("m")))[0] is ErrorCode.WORKER_CRASHED
    assert CountedWorker.started == 2


def test_a_crash_before_the_first_token_goes_to_the_fallback(start_engine: StartEngine) -> None:
    handle = start_engine(
        {"a": {"die": "SIGKILL", "die_after": 0}, "reserve": {"reply": "still here"}},
        "router: {fallback_models: [reserve]}",
    )
    answer = Answer(handle, request())
    assert isinstance(answer.end(), Finished)
    assert answer.text == "still here"
    assert [event.decision.model for event in answer.of(Routed)] == ["a", "reserve"]


def test_a_named_model_never_falls_back(start_engine: StartEngine) -> None:
    handle = start_engine(
        {"a": {"load_error": "broken"}, "reserve": {}}, "router: {fallback_models: [reserve]}"
    )
    assert _failure(Answer(handle, request("a")))[0] is ErrorCode.MODEL_LOAD_FAILED


def test_cancel_is_answered_at_once_in_every_phase(start_engine: StartEngine) -> None:
    handle = start_engine(
        {"slow": {"load_hangs": True}, "m": {"endless": True, "pace_s": 0.001}},
        "executor: {max_batch_size: 1}",
    )
    loading = Answer(handle, request("slow"))
    loading.wait_for(Loading)
    handle.cancel(loading.request.id)
    assert isinstance(loading.end(), Cancelled)
    handle.unload("slow").result(DEADLINE_S)

    running = Answer(handle, request("m"))
    running.wait_for(Delta)
    waiting = Answer(handle, request("m", max_tokens=2))
    waiting.wait_for(Queued)
    cancelled_waiting = Answer(handle, request("m"))
    cancelled_waiting.wait_for(Queued)
    handle.cancel(cancelled_waiting.request.id)
    assert isinstance(cancelled_waiting.end(), Cancelled)
    handle.cancel(running.request.id)
    assert isinstance(running.end(), Cancelled)
    assert isinstance(waiting.end(), Finished), "the freed slot goes to the one who waited"


def test_queue_bounds_and_timeout(start_engine: StartEngine) -> None:
    handle = start_engine(
        {"m": {"endless": True, "pace_s": 0.001}},
        "executor: {max_batch_size: 1}\nscheduler: {max_queue: 1, queue_timeout_ms: 200}",
    )
    running = Answer(handle, request("m"))
    running.wait_for(Delta)
    waiting = Answer(handle, request("m"))
    refused = Answer(handle, request("m"))
    assert _failure(refused)[0] is ErrorCode.QUEUE_FULL
    assert _failure(waiting)[0] is ErrorCode.QUEUE_TIMEOUT
    assert waiting.of(Queued)[0].position == 1
    handle.cancel(running.request.id)


def test_unload_ends_streams_with_a_typed_error_and_may_be_repeated(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {"endless": True, "pace_s": 0.001}})
    answer = Answer(handle, request("m"))
    answer.wait_for(Delta)
    handle.unload("m").result(DEADLINE_S)
    assert _failure(answer)[0] is ErrorCode.MODEL_UNLOADED
    handle.unload("m").result(DEADLINE_S)
    assert handle.models[0].state is ModelState.COLD
    assert not psutil.Process().children()


def test_a_cancel_right_after_the_submit_leaks_no_slot(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}}, "executor: {max_batch_size: 1}")
    Answer(handle, request("m")).end()

    async def submit_and_cancel() -> Answer:
        # On the engine's loop both calls run before any task that the first one starts.
        answer = Answer(handle, request("m"))
        handle.cancel(answer.request.id)
        return answer

    for _ in range(3):
        assert isinstance(handle.run(submit_and_cancel()).result(DEADLINE_S).end(), Cancelled)
    assert isinstance(Answer(handle, request("m")).end(), Finished)


def test_requests_during_the_stop_end_too(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {"endless": True, "pace_s": 0.001}}, "executor: {max_batch_size: 1}")
    answers = [Answer(handle, request("m")) for _ in range(3)]
    answers[0].wait_for(Delta)
    late: list[Answer] = []
    handle.subscribe(lambda event: late.append(Answer(handle, request("m"))) if len(late) < 3 else None)
    handle.stop()
    assert {_failure(answer)[0] for answer in [*answers, *late]} == {ErrorCode.ENGINE_STOPPED}


def test_an_engine_that_cannot_start_says_so_and_frees_the_folder(
    start_engine: StartEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("laya_desktop.engine.engine.starter_models", lambda paths: 1 / 0)
        with pytest.raises(LayaError, match="cannot start"):
            start_engine({})
    assert start_engine({"m": {}}).models


def test_the_timeline_tells_every_change_once(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}})
    notices: list[str] = []
    handle.subscribe(lambda event: notices.append(event.kind) if isinstance(event, Notice) else None)
    for _ in range(2):
        Answer(handle, request("m")).end()
        handle.unload("m").result(DEADLINE_S)
    assert notices == ["loaded", "unloading", "loaded", "unloading"]


def test_an_idle_model_is_unloaded_after_its_time_to_live(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}, "kept": {}}, "executor: {idle_unload_s: 0}")
    cold = threading.Event()

    def sink(event: EngineEvent) -> None:
        if isinstance(event, ModelStatus) and event.state is ModelState.UNLOADING:
            cold.set()

    handle.subscribe(sink)
    assert isinstance(Answer(handle, request("m")).end(), Finished)
    assert cold.wait(DEADLINE_S)


def test_requests_that_race_the_time_to_live_are_all_answered(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {"reply": "x"}}, "executor: {idle_unload_s: 0.002}")
    for _ in range(40):
        assert isinstance(Answer(handle, request("m")).end(), Finished)


def test_models_that_are_kept_in_memory_are_loaded_at_the_start(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}, "n": {}}, "router: {}")
    warm = threading.Event()

    def sink(event: EngineEvent) -> None:
        if isinstance(event, ModelStatus) and event.state is ModelState.WARM:
            warm.set()

    handle.stop()
    file = handle._store.path
    file.write_text(file.read_text().replace("gguf}", "gguf, keep_in_memory: true}", 1))
    again = EngineHandle(ConfigStore(file), handle._paths, handle._executor_factory)
    again._store.load()
    again.subscribe(sink)
    again.start()
    try:
        assert warm.wait(DEADLINE_S)
        assert [model.state for model in again.models] == [ModelState.WARM, ModelState.COLD]
    finally:
        again.stop()


def test_two_busy_models_share_the_processor(start_engine: StartEngine) -> None:
    handle = start_engine(
        {name: {"endless": True, "pace_s": 0.001} for name in "mn"}, "executor: {threads: 2}"
    )
    answers = [Answer(handle, request(name)) for name in "mn"]
    for answer in answers:
        answer.wait_for(Delta)

    async def threads() -> list[int]:
        assert handle._engine is not None
        return [runner._threads for runner in handle._engine._executor.runners]

    assert handle.run(threads()).result(DEADLINE_S) == [1, 1]
    handle.cancel(answers[0].request.id)
    assert isinstance(Answer(handle, request("m", max_tokens=1)).end(), Finished)
    for answer in answers:
        handle.cancel(answer.request.id)


def test_unload_while_loading_cancels_the_load(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {"load_hangs": True}})
    answer = Answer(handle, request("m"))
    answer.wait_for(Loading)
    handle.unload("m").result(DEADLINE_S)
    assert _failure(answer)[0] is ErrorCode.MODEL_UNLOADED


def test_unknown_model_names_the_known_ones(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}, "n": {}})
    end = Answer(handle, request("gpt-4o")).end()
    assert isinstance(end, Failed)
    assert end.error.code is ErrorCode.MODEL_NOT_FOUND
    assert "m, n" in end.error.hint


def test_stop_leaves_no_process_and_no_open_stream(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {"endless": True, "pace_s": 0.001}})
    answer = Answer(handle, request("m"))
    answer.wait_for(Delta)
    handle.stop()
    assert _failure(answer)[0] is ErrorCode.ENGINE_STOPPED
    assert not psutil.Process().children()
    late = Answer(handle, request("m"))
    assert _failure(late)[0] is ErrorCode.ENGINE_STOPPED


def test_a_second_engine_on_the_same_folder_is_refused(start_engine: StartEngine) -> None:
    start_engine({"m": {}})
    with pytest.raises(LayaError, match="Another Laya Desktop"):
        start_engine({"m": {}})


def test_a_broken_config_keeps_the_last_good_one_and_recovers(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}, "n": {}})
    seen: list[EngineEvent] = []
    arrived = threading.Condition()

    def sink(event: EngineEvent) -> None:
        with arrived:
            seen.append(event)
            arrived.notify_all()

    def wait_for(kind: type) -> None:
        with arrived:
            assert arrived.wait_for(lambda: any(isinstance(e, kind) for e in seen), DEADLINE_S)
            seen.clear()

    handle.subscribe(sink)
    file = handle._store.path
    good = file.read_text()
    file.write_text("models:\n\t- broken")
    wait_for(ConfigRejected)
    assert [model.name for model in handle.models] == ["m", "n"]
    assert isinstance(Answer(handle, request("n")).end(), Finished)
    file.write_text(good.replace("  - {name: n, path: /none/n.gguf}\n", ""))
    wait_for(ConfigApplied)
    assert [model.name for model in handle.models] == ["m"]


def test_model_states_are_published(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}})
    states: list[ModelState] = []
    handle.subscribe(lambda e: states.append(e.state) if isinstance(e, ModelStatus) else None)
    Answer(handle, request("m")).end()
    handle.unload("m").result(DEADLINE_S)
    order = [s for s, before in zip(states, [None, *states], strict=False) if s is not before]
    assert [s.value for s in order if s is not ModelState.FAILED][-5:] == [
        "warm",
        "busy",
        "warm",
        "unloading",
        "cold",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_worker_does_not_outlive_a_killed_engine() -> None:
    code = (
        "import subprocess, sys, os;"
        "from laya_desktop.worker.process import worker_command;"
        "p = subprocess.Popen(worker_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE);"
        "print(p.pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    worker = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    _gone, alive = psutil.wait_procs([worker], timeout=DEADLINE_S)
    assert not alive
    parent.stdout.close()
    assert parent.stdin is not None
    parent.stdin.close()


def test_the_engine_imports_no_native_library_and_no_qt() -> None:
    code = (
        "import sys, laya_desktop.engine.handle;"
        "bad = {'PySide6', 'torch', 'mlx', 'llama_cpp', 'transformers'} & set(sys.modules);"
        "sys.exit(', '.join(bad) if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)


def test_an_unload_in_the_step_of_a_load_leaves_the_model_usable(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}})

    async def race(turns: int) -> None:
        assert handle._engine is not None
        engine = handle._engine
        unloading = asyncio.ensure_future(engine.unload("m"))
        loading = asyncio.ensure_future(engine.load("m"))
        for _ in range(turns):
            await asyncio.sleep(0)
        await engine.unload("m")
        await asyncio.gather(unloading, loading, return_exceptions=True)

    for turns in range(6):
        handle.run(race(turns)).result(DEADLINE_S)
        assert isinstance(Answer(handle, request("m")).end(), Finished)


def test_a_changed_model_is_loaded_anew_once_it_is_idle(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {"endless": True, "pace_s": 0.001}})
    answer = Answer(handle, request("m"))
    answer.wait_for(Delta)
    applied, unloading = threading.Event(), threading.Event()

    def sink(event: EngineEvent) -> None:
        if isinstance(event, ConfigApplied):
            applied.set()
        if isinstance(event, ModelStatus) and event.state is ModelState.UNLOADING:
            unloading.set()

    handle.subscribe(sink)
    file = handle._store.path
    file.write_text(file.read_text() + "executor: {stream_buffer: 512}")
    assert applied.wait(DEADLINE_S)
    assert not unloading.is_set(), "the stream goes on"
    handle.cancel(answer.request.id)
    assert unloading.wait(DEADLINE_S)
    accepted = Answer(handle, request("m", max_tokens=1)).wait_for(Accepted)
    assert isinstance(accepted, Accepted)
    assert accepted.context_tokens == 512


def test_unusable_files_do_not_count_as_failures_of_the_model(
    start_engine: StartEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = start_engine({"m": {}})
    missing = LayaError(ErrorCode.MODEL_FILE_MISSING, "gone")

    async def fail(entry: object) -> None:
        raise missing

    async def swap(new: object) -> object:
        assert handle._engine is not None
        old, handle._engine._executor._inspect = handle._engine._executor._inspect, new
        return old

    inspect = handle.run(swap(fail)).result(DEADLINE_S)
    for _ in range(4):
        assert _failure(Answer(handle, request("m")))[0] is ErrorCode.MODEL_FILE_MISSING
    handle.run(swap(inspect)).result(DEADLINE_S)
    assert isinstance(Answer(handle, request("m")).end(), Finished)


def test_long_names_in_any_script_get_a_log_of_their_own() -> None:
    names = ["模" * 100, "模" * 99, "a b", "a_b", "a" * 200]
    files = {executor._file_name(name) for name in names}
    assert len(files) == len(names)
    assert all(len(file.encode()) < 100 for file in files)


def test_a_folder_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    handle = EngineHandle(ConfigStore(None), Paths.below(tmp_path / "file"))
    with pytest.raises(LayaError, match="cannot be used"):
        handle.start()
