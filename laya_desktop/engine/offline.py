"""Decisions for a config without a running engine: no thread, no workers, no lock on the data folder."""

import asyncio
from types import TracebackType

from laya_desktop.config.store import ConfigStore
from laya_desktop.core.paths import Paths
from laya_desktop.core.types import ChatRequest, Decision
from laya_desktop.engine.engine import Engine
from laya_desktop.engine.executor import create_executor


class OfflineEngine:
    """Use as a context manager, in one thread. Model files are read when it is entered; every model counts as
    not loaded."""

    def __init__(self, store: ConfigStore, paths: Paths) -> None:
        """`store` has been loaded."""
        self._runner = asyncio.Runner()
        self._engine = Engine(store, paths, lambda event: None, create_executor)

    def __enter__(self) -> "OfflineEngine":
        self._runner.run(self._engine.prepare())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.close()

    def route(self, request: ChatRequest) -> Decision:
        """Which model would answer. Raises LayaError."""
        return self._engine.route(request)
