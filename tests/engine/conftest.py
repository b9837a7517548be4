"""An engine whose models are scripted workers in real processes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from laya_desktop.config.schema import ExecutorConfig, ModelEntry
from laya_desktop.config.store import ConfigStore
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.paths import Paths
from laya_desktop.core.types import LoadSpec, ModelInfo
from laya_desktop.engine.executor import Executor, Inspect
from laya_desktop.engine.handle import EngineHandle
from laya_desktop.worker.process import WorkerProcess

StartEngine = Callable[..., EngineHandle]


def _fake_spec(scripts: dict[str, dict[str, object]]) -> Callable[[ModelEntry, ExecutorConfig], LoadSpec]:
    def make(entry: ModelEntry, settings: ExecutorConfig) -> LoadSpec:
        return LoadSpec(
            name=entry.name,
            backend="fake",
            path=json.dumps(scripts[entry.name]),
            context_tokens=settings.stream_buffer,
            max_streams=settings.max_batch_size,
            threads=2,
        )

    return make


def _fake_inspect(scripts: dict[str, dict[str, object]]) -> Inspect:
    async def inspect(entry: ModelEntry) -> tuple[ModelInfo, str]:
        info = ModelInfo(architecture="fake", size_bytes=len(entry.name), has_chat_template=True)
        return info, json.dumps(scripts[entry.name])

    return inspect


class CountedWorker(WorkerProcess):
    """Counts how many workers were started."""

    started = 0

    async def start(self) -> None:
        type(self).started += 1
        await super().start()


@pytest.fixture
def start_engine(tmp_path: Path) -> Iterator[StartEngine]:
    """`start_engine({"name": script, …}, config_text)` gives a running handle; it is stopped afterwards."""
    handles: list[EngineHandle] = []
    CountedWorker.started = 0

    def start(scripts: dict[str, dict[str, object]], config_text: str = "") -> EngineHandle:
        paths = Paths.below(tmp_path / "home").create()
        models = "".join(f"  - {{name: {name}, path: /none/{name}.gguf}}\n" for name in scripts)
        paths.config_file.write_text(f"models:\n{models}{config_text}" if models else config_text)
        store = ConfigStore(paths.config_file)
        assert store.load(), store.problems

        def executor(paths: Paths, on_status: Callable[[ModelStatus], None]) -> Executor:
            return Executor(
                lambda name, on_report, on_exit: CountedWorker(
                    name, paths.logs / f"{name}.log", on_report, on_exit
                ),
                _fake_spec(scripts),
                _fake_inspect(scripts),
                on_status,
            )

        handle = EngineHandle(store, paths, executor)
        handle.start()
        handles.append(handle)
        return handle

    yield start
    for handle in handles:
        handle.stop()
