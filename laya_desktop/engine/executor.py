"""Owns one runner per registered model and keeps them in step with the config. Runs on the engine's loop."""

import asyncio
import contextlib
import logging
import os
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

import msgspec
import psutil

from laya_desktop.config.schema import Backend, ExecutorConfig, ModelEntry
from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.paths import Paths
from laya_desktop.core.types import LoadSpec, ModelInfo
from laya_desktop.engine.catalog import inspect_model, model_parts
from laya_desktop.engine.runner import ModelRunner, Prepare
from laya_desktop.worker.process import ExitSink, ReportSink, Worker, WorkerFactory, WorkerProcess

log = logging.getLogger(__name__)

StatusSink = Callable[[ModelStatus], None]
Inspect = Callable[[ModelEntry], Awaitable[tuple[ModelInfo, str]]]
"""Metadata of an entry's files, and the one of them to load."""
MakeSpec = Callable[[ModelEntry, ExecutorConfig], LoadSpec]
ExecutorFactory = Callable[[Paths, StatusSink], "Executor"]

_ALL_LAYERS = -1


class Executor:
    """Turns config entries into runners and finds them by name."""

    def __init__(
        self, create_worker: WorkerFactory, make_spec: MakeSpec, inspect: Inspect, on_status: StatusSink
    ) -> None:
        self._create_worker = create_worker
        self._make_spec = make_spec
        self._inspect = inspect
        self._on_status = on_status
        self._load_turn = asyncio.Lock()
        self._threads = 1
        self._kept: list[str] = []
        self._runners: dict[str, ModelRunner] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def runners(self) -> Iterable[ModelRunner]:
        """In config order."""
        return self._runners.values()

    def apply(self, entries: Sequence[ModelEntry], settings: ExecutorConfig, load_timeout_s: float) -> None:
        """Take over a new list of models. Removed ones are unloaded; a changed one takes its new settings at
        its next load, which is brought forward if it is idle."""
        previous, self._runners = self._runners, {}
        self._threads = settings.threads or default_threads()
        self._kept = [entry.name for entry in entries if entry.keep_in_memory or entry.warmup]
        for entry in entries:
            spec = self._make_spec(entry, settings)
            runner = previous.pop(entry.name, None)
            if runner is None:
                runner = ModelRunner(
                    spec, self._prepare(entry, spec), self._create_worker, self._load_turn, self._on_status
                )
                self._start(runner.inspect())
            elif runner.spec != spec:
                runner.configure(spec, self._prepare(entry, spec))
                self._start(runner.inspect())
            runner.load_timeout_s = load_timeout_s
            runner.idle_unload_s = None if entry.keep_in_memory else _idle_unload_s(entry, settings)
            self._runners[entry.name] = runner
        for runner in previous.values():
            self._start(runner.unload())

    async def inspected(self) -> None:
        """Wait until the files of all models have been read."""
        await asyncio.gather(*self._tasks)

    def warm_up(self) -> None:
        """Load the models that the config wants warm from the start, one after the other."""
        for name in self._kept:
            self._start(_warm_up(self._runners[name]))

    def recheck(self) -> None:
        """Look again at the files of cold models that were unusable: they may be back."""
        for runner in self.runners:
            if runner.is_unusable:
                self._start(runner.inspect())

    def share_threads(self) -> None:
        """Divide the processor among the models that compute now, so that they do not fight for it."""
        busy = [runner for runner in self.runners if runner.busy]
        for runner in busy:
            runner.use_threads(max(1, min(runner.spec.threads, self._threads // len(busy))))

    def runner(self, name: str) -> ModelRunner:
        """The runner of a registered name. Raises LayaError(MODEL_NOT_FOUND) if it was just removed."""
        runner = self._runners.get(name)
        if runner is None:
            raise LayaError(ErrorCode.MODEL_NOT_FOUND, f"'{name}' is not registered any more.", param="model")
        return runner

    def statuses(self) -> tuple[ModelStatus, ...]:
        return tuple(runner.status() for runner in self.runners)

    def workers(self) -> dict[str, int]:
        """Process ids of the workers that run now, by model."""
        return {runner.spec.name: runner.pid for runner in self.runners if runner.pid is not None}

    async def close(self) -> None:
        """Unload everything and wait for it."""
        await asyncio.gather(*(runner.unload() for runner in self.runners))
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _prepare(self, entry: ModelEntry, spec: LoadSpec) -> Prepare:
        async def prepare() -> tuple[ModelInfo, LoadSpec]:
            info, file = await self._inspect(entry)
            template = await asyncio.to_thread(entry.template_source)
            return info, msgspec.structs.replace(spec, path=file, chat_template=template)

        return prepare

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _warm_up(runner: ModelRunner) -> None:
    with contextlib.suppress(LayaError):  # it is in the model's state
        await runner.ensure_ready(lambda event: None)


def _idle_unload_s(entry: ModelEntry, settings: ExecutorConfig) -> float | None:
    return settings.idle_unload_s if entry.idle_unload_s is None else entry.idle_unload_s


def create_executor(paths: Paths, on_status: StatusSink) -> Executor:
    """The executor of the product: worker processes, specs from the config, files read by the catalog."""

    def create_worker(name: str, on_report: ReportSink, on_exit: ExitSink) -> Worker:
        return WorkerProcess(name, paths.logs / f"worker-{_file_name(name)}.log", on_report, on_exit)

    return Executor(create_worker, load_spec, _inspect_file, on_status)


def _file_name(model: str) -> str:
    """A file name for a model's name: short, plain, and different for different names."""
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in model)
    return plain if plain == model and len(plain) <= 60 else f"{plain[:60]}-{zlib.crc32(model.encode()):08x}"


async def _inspect_file(entry: ModelEntry) -> tuple[ModelInfo, str]:
    if entry.backend != Backend.GGUF:
        raise LayaError(
            ErrorCode.BACKEND_MISSING,
            f"The backend '{entry.backend}' is not part of this version.",
            hint="Use a GGUF file for this model.",
        )
    return await asyncio.to_thread(_read_files, entry.path)


def _read_files(path: str) -> tuple[ModelInfo, str]:
    return inspect_model(path), str(model_parts(path)[0])


def load_spec(entry: ModelEntry, settings: ExecutorConfig) -> LoadSpec:
    """What the worker is told to load."""
    return LoadSpec(
        name=entry.name,
        backend=entry.backend,
        path=entry.path,
        context_tokens=entry.context_tokens or settings.stream_buffer,
        max_streams=settings.max_batch_size,
        threads=settings.threads or default_threads(),
        gpu_layers=_gpu_layers(entry),
        chat_template=entry.chat_template,
    )


def _gpu_layers(entry: ModelEntry) -> int:
    """llama.cpp offloads nothing in a build without a GPU, so that all layers is a safe `auto`."""
    if entry.device == "cpu":
        return 0
    return _ALL_LAYERS if entry.gpu_layers == "auto" else entry.gpu_layers


def default_threads() -> int:
    """Physical cores that this process may use: a second thread per core slows decoding down."""
    physical = psutil.cpu_count(logical=False) or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(physical, allowed))
