"""Model files that vanish, come back, or change while they are in use (the real engine and model)."""

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from laya_desktop.config.store import ConfigStore
from laya_desktop.core.errors import ErrorCode
from laya_desktop.core.events import EngineEvent, Failed, Finished, ModelStatus
from laya_desktop.core.paths import Paths
from laya_desktop.engine.handle import EngineHandle
from tests.engine.collect import DEADLINE_S, Answer, request

pytestmark = [pytest.mark.model, pytest.mark.slow]


@pytest.fixture
def model_file(tmp_path: Path, starter_model: Path) -> Path:
    return Path(shutil.copy(starter_model, tmp_path / "copy.gguf"))


@pytest.fixture
def engine(tmp_path: Path, model_file: Path) -> Iterator[EngineHandle]:
    paths = Paths.below(tmp_path / "home").create()
    paths.config_file.write_text(
        f"models: [{{name: m, path: '{model_file}'}}]\nexecutor: {{stream_buffer: 512, max_batch_size: 2}}\n"
    )
    store = ConfigStore(paths.config_file)
    assert store.load()
    handle = EngineHandle(store, paths)
    yield handle
    handle.stop()


def _end(handle: EngineHandle) -> Finished | Failed:
    end = Answer(handle, request("m", max_tokens=4)).end()
    assert isinstance(end, Finished | Failed)
    return end


def test_a_missing_file_is_told_and_the_model_works_again_once_it_is_back(
    engine: EngineHandle, model_file: Path
) -> None:
    away = model_file.rename(model_file.with_suffix(".away"))
    engine.start()
    end = _end(engine)
    assert isinstance(end, Failed)
    assert end.error.code is ErrorCode.MODEL_FILE_MISSING
    assert str(model_file) in end.error.message
    usable = threading.Event()

    def sink(event: EngineEvent) -> None:
        if isinstance(event, ModelStatus) and event.info is not None and event.error is None:
            usable.set()

    engine.subscribe(sink)
    away.rename(model_file)
    assert isinstance(_end(engine), Finished)
    assert usable.wait(DEADLINE_S)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows refuses to remove a file that is in use")
def test_a_file_deleted_or_replaced_while_loaded_keeps_serving(
    engine: EngineHandle, model_file: Path, starter_model: Path
) -> None:
    engine.start()
    assert isinstance(_end(engine), Finished)
    model_file.unlink()
    assert isinstance(_end(engine), Finished)
    fresh = Path(shutil.copy(starter_model, model_file.with_suffix(".new")))
    fresh.replace(model_file)
    assert isinstance(_end(engine), Finished)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows refuses to truncate a file that is in use")
def test_a_file_truncated_while_loaded_ends_one_worker_only(engine: EngineHandle, model_file: Path) -> None:
    engine.start()
    assert isinstance(_end(engine), Finished)
    os.truncate(model_file, 1_000_000)
    end = _end(engine)
    assert isinstance(end, Failed)
    assert end.error.code is ErrorCode.WORKER_CRASHED
    assert "SIGBUS" in end.error.message
    end = _end(engine)
    assert isinstance(end, Failed)
    assert end.error.code is ErrorCode.MODEL_LOAD_FAILED
    assert "truncated" in end.error.message
