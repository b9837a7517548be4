"""`--smoke`: ask one question through the real window and tell what came. UI thread only."""

import sys
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, QTimer

from laya_desktop.core.types import Sampling
from laya_desktop.ui.chat.turn import Phase, tokens_per_second
from laya_desktop.ui.main_window import MainWindow
from laya_desktop.ui.services import EngineState, Services

QUESTION: Final = "Where is the Eiffel Tower?"
_TIMEOUT_MS: Final = 150_000


class Smoke(QObject):
    """Calls `finished(exit_code)` once: 0 only if text came out."""

    def __init__(self, window: MainWindow, services: Services, finished: Callable[[int], None]) -> None:
        super().__init__()
        self._window, self._services, self._finished = window, services, finished
        self._asked = self._over = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(lambda: self._fail("no answer within 150 s"))
        self._timer.start(_TIMEOUT_MS)
        services.state.engine_changed.connect(self._look)
        services.bridge.models_changed.connect(self._look)
        self._look()

    def _look(self, _models: object = None) -> None:
        state = self._services.state
        if state.engine is EngineState.FAILED:
            self._fail(state.engine_error.sentence() if state.engine_error else "the engine did not start")
        elif state.engine is EngineState.READY and not self._asked and not self._over:
            if not self._services.bridge.models:
                self._fail(f"there is no model; put one into {self._services.paths.models}")
                return
            self._asked = True
            QTimer.singleShot(0, self._ask)

    def _ask(self) -> None:
        chat = self._window.chat
        chat.session.sampling = Sampling(temperature=0.0, max_tokens=64)
        chat.session.running_changed.connect(self._report)
        chat.composer.edit.setPlainText(QUESTION)
        chat.composer.send()

    def _report(self) -> None:
        session = self._window.chat.session
        if session.running or self._over:
            return
        answer = session.turns[-1]
        if answer.phase is Phase.FAILED or not answer.content.strip():
            self._fail(answer.error.sentence() if answer.error else "the answer is empty")
            return
        speed = tokens_per_second(answer)
        print(answer.content.strip())
        print(f"model: {answer.model}")
        print(f"time to first token: {answer.first_token_s or 0:.2f} s")
        print(f"tokens/s: {speed:.1f}" if speed is not None else "tokens/s: unknown", flush=True)
        if session.conversation is not None:
            self._window.chat.sessions.delete(session.conversation)
        self._end(0)

    def _fail(self, reason: str) -> None:
        print(f"smoke test failed: {reason}", file=sys.stderr, flush=True)
        self._end(1)

    def _end(self, code: int) -> None:
        if not self._over:
            self._over = True
            self._timer.stop()
            self._finished(code)
