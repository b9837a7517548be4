"""What the pages share: the bridge, folders, saved settings, and the state of engine and server.

Built once by the composition root. UI thread only.
"""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from laya_desktop.core.errors import ErrorInfo
from laya_desktop.core.paths import Paths
from laya_desktop.ui.bridge import Bridge
from laya_desktop.ui.chat.history import History
from laya_desktop.ui.session_log import SessionLog


class EngineState(Enum):
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True)
class ServerState:
    """`url` while the server listens; else `problem` (a sentence), and a port that was free a moment ago."""

    url: str | None = None
    problem: str = ""
    free_port: int | None = None


class AppState(QObject):
    """Changes of engine and server as signals."""

    engine_changed = Signal()
    server_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.engine = EngineState.STARTING
        self.engine_error: ErrorInfo | None = None
        self.server = ServerState()

    def set_engine(self, state: EngineState, error: ErrorInfo | None = None) -> None:
        self.engine, self.engine_error = state, error
        self.engine_changed.emit()

    def set_server(self, state: ServerState) -> None:
        self.server = state
        self.server_changed.emit()


@dataclass(frozen=True)
class Services:
    bridge: Bridge
    history: History
    paths: Paths
    config_file: Path
    state: AppState
    log: SessionLog
